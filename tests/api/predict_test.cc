// Tests predictions for the examples of datasets.
#include <gtest/gtest.h>

#include <fstream>
#include <span>

#include "tests/api/programs.h"

namespace {

std::vector<float> Floats(const tj::Tensor& tensor) {
  return {tensor.float32().begin(), tensor.float32().end()};
}

std::vector<float> PredictedFor(tj::CompiledModel& model, const tj::Dataset& examples,
                                const tj::PredictOptions& options = {}) {
  const auto outputs = model.Predict(examples, options);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? Floats(outputs->at("logits")) : std::vector<float>();
}

tj::Result<bool> Always(const tj::data::Example& /*example*/) {
  return true;
}

tj::Result<tj::data::Example> Unchanged(const tj::data::Example& example) {
  return example;
}

// Matrix products of different sizes may add in different orders, so only predictions with equal
// batch sizes have equal bits.
TEST(PredictDataset, EqualsThePredictionForItsArrays) {
  tj::CompiledModel model = Compiled();
  const tj::Tensor x = Points(70).x;
  const std::vector<float> expected = Floats(model.Predict(x).value());
  EXPECT_EQ(expected.size(), 140U);
  EXPECT_EQ(PredictedFor(model, tj::data::Arrays{.x = x}), expected);
  EXPECT_EQ(PredictedFor(model, tj::data::Arrays{.x = x}, {.batch_size = 70}),
            Floats(model.Predict(x, {.batch_size = 70}).value()));
  EXPECT_EQ(PredictedFor(model, Points(70)), expected);  // with labels, which are not read
  const std::span<const float> last = x.float32().subspan(120);
  const tj::Tensor tail = tj::Tensor::Of({10, 2}, {last.begin(), last.end()}).value();
  EXPECT_EQ(PredictedFor(model, tj::Dataset(tj::data::Arrays{.x = x}).Skip(60)),
            Floats(model.Predict(tail).value()));
}

TEST(PredictDataset, HasItsOwnScale) {
  tj::CompiledModel model = Compiled();
  const tj::Tensor x = Points(8).x;
  EXPECT_EQ(PredictedFor(model, tj::data::Arrays{.x = x, .scale = 0.5}),
            Floats(model.Predict(x, {.scale = 0.5}).value()));
  const auto refused = model.Predict(tj::data::Arrays{.x = x}, {.scale = 0.5});
  EXPECT_EQ(refused.status().message(),
            "scale: expected 1, because a Dataset has its own factor, such as Arrays::scale, got "
            "0.5");
}

TEST(PredictDataset, NeedsNoLabelsInAFile) {
  const std::string path = Temp("points.jsonl");
  const tj::Tensor x = Points(5).x;
  std::ofstream out(path);
  out.precision(9);
  for (size_t i = 0; i < 5; ++i)
    out << R"({"x": [)" << x.float32()[2 * i] << ", " << x.float32()[2 * i + 1] << "]}\n";
  out.close();
  const tj::data::JsonLines lines = {
      .files = {path}, .features = {{"x", {.shape = {2}}}, {"y", {.dtype = "int64"}}}};
  tj::CompiledModel model = Compiled();
  EXPECT_EQ(PredictedFor(model, lines), Floats(model.Predict(x).value()));
  EXPECT_FALSE(model.Evaluate(lines).ok());
}

TEST(PredictDataset, NeedsNoLoss) {
  tj::CompiledModel model =
      tj::Session(tj::Strategy::OneDevice(), {.threads = 1}).Compile(Classifier(), {}).value();
  const tj::Tensor x = Points(9).x;
  const std::vector<float> expected = Floats(model.Predict(x).value());
  EXPECT_EQ(PredictedFor(model, tj::data::Arrays{.x = x}), expected);
  EXPECT_EQ(PredictedFor(model, tj::Dataset(tj::data::Arrays{.x = x}).Filter(Always)), expected);
}

TEST(PredictDataset, NeedsNoLabelsForFunctions) {
  tj::CompiledModel model = Compiled();
  const tj::Tensor x = Points(9).x;
  const std::vector<float> expected = Floats(model.Predict(x).value());
  const tj::Dataset unlabelled = tj::data::Arrays{.x = x};
  EXPECT_EQ(PredictedFor(model, unlabelled.Map(Unchanged)), expected);
  EXPECT_EQ(PredictedFor(model, unlabelled.Filter(Always)), expected);
  EXPECT_EQ(PredictedFor(model, unlabelled.CacheFile(Temp("unlabelled.cache"))), expected);
  EXPECT_FALSE(model.Evaluate(unlabelled.Map(Unchanged)).ok());
}

TEST(PredictDataset, NeedsNoFeatureOfTheLabelsForFunctions) {
  const std::string path = Temp("inputs.jsonl");
  std::ofstream(path) << R"({"x": [0.5, 1]})" << "\n" << R"({"x": [1, 0.5]})" << "\n";
  const tj::Dataset lines =
      tj::data::JsonLines{.files = {path}, .features = {{"x", {.shape = {2}}}}};
  tj::CompiledModel model = Compiled();
  EXPECT_EQ(PredictedFor(model, lines.Map(Unchanged)), PredictedFor(model, lines));
}

TEST(PredictDataset, FunctionsGetTheLabels) {
  tj::CompiledModel model = Compiled();
  const tj::data::Arrays points = Points(40);
  const auto is_one = [](const tj::data::Example& example) -> tj::Result<bool> {
    return example.y.int64()[0] == 1;
  };
  const std::vector<float> all = Floats(model.Predict(points.x).value());
  std::vector<float> expected;
  for (size_t i = 0; i < 40; ++i) {
    if (points.y.int64()[i] == 1) expected.insert(expected.end(), {all[2 * i], all[2 * i + 1]});
  }
  EXPECT_EQ(PredictedFor(model, tj::Dataset(points).Filter(is_one)), expected);
}

TEST(PredictDataset, NamesAMissingInput) {
  tj::CompiledModel model = Compiled();
  const auto refused = model.Predict(tj::data::Arrays{.y = Points(8).y});
  EXPECT_EQ(refused.status().code(), tj::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("data.eval"), std::string::npos) << refused.status();
}

}  // namespace
