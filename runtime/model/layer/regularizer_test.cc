#include "runtime/model/layer/regularizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/keras.h"

namespace tfjob::model {
namespace {

StatusOr<Regularizer> Read(const char* text) {
  const StatusOr<Json> json = ParseJson(text, "the test");
  EXPECT_TRUE(json.ok()) << json.status();
  return ReadRegularizer(JsonField(*json, "kernel_regularizer"));
}

TEST(Regularizer, ReadsKerasFormsAndWritesThemBack) {
  using Kind = Regularizer::Kind;
  const struct {
    const char* text;
    Regularizer expected;
  } cases[] = {
      {R"("l1")", {.kind = Kind::kL1, .l1 = 0.01}},
      {R"({"class_name": "L2", "config": {"l2": 0.5}})", {.kind = Kind::kL2, .l2 = 0.5}},
      {R"({"L1L2": {"l1": 0.1, "l2": 0.2}})", {.kind = Kind::kL1L2, .l1 = 0.1, .l2 = 0.2}},
      {R"({"module": "keras.regularizers", "class_name": "OrthogonalRegularizer",
           "config": {"factor": 0.25, "mode": "columns"}, "registered_name": null})",
       {.kind = Kind::kOrthogonal, .factor = 0.25, .mode = Regularizer::Mode::kColumns}},
  };
  for (const auto& [text, expected] : cases) {
    const StatusOr<Regularizer> read = Read(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, expected) << text;
    const Json written = WriteRegularizer(*read);
    EXPECT_EQ(*ReadRegularizer(JsonField(written)), expected) << text;
  }
  EXPECT_TRUE(WriteRegularizer({}).is_null());
}

TEST(Regularizer, RefusesWithThePathTheArgumentAndWhatIsSupported) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {R"("l3")", "kernel_regularizer: regularizer l3 is not supported; did you mean \"L1\"?"},
      {R"({"L2": {"l2": -1}})",
       "regularizer L2: kernel_regularizer.L2.l2: expected a finite number of at least 0, got -1"},
      {R"({"OrthogonalRegularizer": {"mode": "diagonal"}})",
       "regularizer OrthogonalRegularizer: kernel_regularizer.OrthogonalRegularizer.mode: expected "
       "one of rows, columns, got \"diagonal\""},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(Message(Read(text).status()), error);
}

TEST(Regularizer, OrthogonalTakesAMatrix) {
  const Regularizer orthogonal{.kind = Regularizer::Kind::kOrthogonal};
  EXPECT_EQ(CheckShape(orthogonal, {3, 2}), OkStatus());
  EXPECT_EQ(Message(CheckShape(orthogonal, {3})),
            "OrthogonalRegularizer takes a matrix, got shape [3]");
  EXPECT_FALSE(CheckShape(orthogonal, {1, 5}).ok());  // no pair of rows
}

// The error names the wrapped layer whose option the wrapper does not support.
TEST(Regularizer, TimeDistributedRefusesThoseOfActivities) {
  const StatusOr<Model> model = ReadKerasJson(
      R"({"class_name": "Sequential", "config": {"layers": [
          {"class_name": "InputLayer", "config": {"batch_shape": [null, 4, 3]}},
          {"class_name": "TimeDistributed", "config": {"layer": {"class_name": "Dense",
           "config": {"units": 2, "name": "each", "activity_regularizer": "l2"}}}}]}})",
      "the test");
  ASSERT_TRUE(model.ok()) << model.status();
  const Status refused = OutputTypes(*model, Features({4, 3})).status();
  EXPECT_NE(Message(refused).find("layer each (Dense): activity_regularizer is not supported"),
            std::string::npos)
      << refused;
}

}  // namespace
}  // namespace tfjob::model
