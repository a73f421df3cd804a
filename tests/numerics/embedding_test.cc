// Compares Embedding with plain loops in double precision.
#include "runtime/model/layers/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/pooling.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

using layers::Dense;
using layers::Embedding;

constexpr size_t kLength = 4, kRows = 9, kColumns = 3;
constexpr Embedding kTable{.input_dim = kRows, .output_dim = kColumns};

Values SomeIds() {
  Values ids(kBatch * kLength);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<float>(i * i % 7) + 0.5f;
  return ids;
}

size_t IdOf(float value) {
  return static_cast<size_t>(value);
}

// Returns the initial values of the table in OneRun.
Values Table() {
  const Tensor table = InitialValue(kTable.embeddings_initializer, DType::kFloat32,
                                    {kRows, kColumns}, 1, "layer/embeddings");
  const auto values = table.data<float>();
  for (const float value : values) EXPECT_LE(std::abs(value), 0.05f) << "Keras' uniform";
  return {values.begin(), values.end()};
}

TEST(EmbeddingNumerics, LooksUpTheRowOfEachId) {
  const Values ids = SomeIds(), table = Table();
  const Values y = OneRun(Chain(kTable), Mode::kPredict, {ids}).Get(kPrediction);
  ASSERT_EQ(y.size(), ids.size() * kColumns);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], table[IdOf(ids[i / kColumns]) * kColumns + i % kColumns]);
}

TEST(EmbeddingNumerics, TheGradientHasTheRowsOfTheBatch) {
  const Values ids = SomeIds(), table = Table();
  const OneRun run(Chain(kTable), Mode::kTrain, {ids});
  const std::vector<int64_t> indices = run.Get<int64_t>("indices/layer/embeddings");
  const Values rows = run.Get("gradients/layer/embeddings");
  ASSERT_EQ(indices.size(), ids.size());
  std::map<size_t, double> uses;
  for (const float id : ids) ++uses[IdOf(id)];
  size_t row = 0;
  for (const auto& [id, count] : uses) {
    ASSERT_EQ(indices[row], static_cast<int64_t>(id));
    for (size_t c = 0; c < kColumns; ++c) {
      // The loss is the mean square of all numbers that are looked up.
      const double expected = 2 * count * table[id * kColumns + c] / double(ids.size() * kColumns);
      EXPECT_NEAR(rows[row * kColumns + c], expected, 1e-8);
    }
    ++row;
  }
  for (; row < indices.size(); ++row) EXPECT_EQ(indices[row], -1);
}

// Tests a text classifier: a linear function of the mean over the embeddings of the words.
TEST(EmbeddingNumerics, FeedsPoolingAndDense) {
  const Values ids = SomeIds(), table = Table();
  const Dense dense{.units = 1,
                    .kernel_initializer = {.kind = Initializer::Kind::kConstant, .value = 2}};
  const Model model = Sequential("m", {{.name = "layer", .config = kTable},
                                       {.name = "pool", .config = layers::GlobalAveragePooling1D{}},
                                       {.name = "dense", .config = dense}});
  const OneRun run(model, Mode::kTrain, {ids});
  const Values y = OneRun(model, Mode::kPredict, {ids}).Get(kPrediction);
  std::map<size_t, std::vector<double>> gradients;
  for (size_t example = 0; example < kBatch; ++example) {
    double sum = 0;
    for (size_t i = 0; i < kLength; ++i) {
      for (size_t c = 0; c < kColumns; ++c)
        sum += table[IdOf(ids[example * kLength + i]) * kColumns + c] * 2 / kLength;
    }
    EXPECT_NEAR(y[example], sum, 1e-6);
    for (size_t i = 0; i < kLength; ++i) {
      std::vector<double>& gradient = gradients[IdOf(ids[example * kLength + i])];
      gradient.resize(kColumns);
      for (double& element : gradient) element += 2 * sum / kBatch * 2 / kLength;
    }
  }
  const Values rows = run.Get("gradients/layer/embeddings");
  size_t row = 0;
  for (const auto& [id, gradient] : gradients) {
    for (size_t c = 0; c < kColumns; ++c)
      EXPECT_NEAR(rows[row * kColumns + c], gradient[c], 1e-7) << id;
    ++row;
  }
}

TEST(EmbeddingNumerics, MasksTheNumberZero) {
  Embedding masked = kTable;
  masked.mask_zero = true;
  const Model model =
      Sequential("m", {{.name = "layer", .config = masked},
                       {.name = "pool", .config = layers::GlobalAveragePooling1D{}}});
  Values ids(kBatch * kLength, 3);
  ids[0] = ids[2] = 0;
  const Values table = Table(), y = OneRun(model, Mode::kPredict, {ids}).Get(kPrediction);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], table[3 * kColumns + i % kColumns], 1e-7);
}

}  // namespace
}  // namespace tfjob::model
