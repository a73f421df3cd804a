// Checks the numbers of parameters of the models in deploy/examples/models, which the trainer reads
// from Keras' JSON. For published models, the expected numbers are the published ones; for all
// other models, the test computes them with formulas.
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "runtime/model/keras.h"
#include "runtime/model/model.h"

namespace tfjob {
namespace {

struct Parameters {
  int64_t all = 0, trainable = 0;
};

Parameters ParametersOf(const std::string& name) {
  const StatusOr<std::string> text = ReadFile(StrCat("deploy/examples/models/", name, ".json"));
  if (!text.ok()) ADD_FAILURE() << text.status();
  const StatusOr<model::Model> model = model::ReadKerasJson(text.ok() ? *text : "{}", name);
  if (!model.ok()) ADD_FAILURE() << model.status();
  if (!model.ok()) return {};
  std::vector<model::TensorType> inputs;
  for (const auto& stated : model::StatedInputs(*model)) inputs.push_back(*stated);
  const StatusOr<std::vector<model::VariableSpec>> variables = model::Variables(*model, inputs);
  if (!variables.ok()) ADD_FAILURE() << variables.status();
  Parameters parameters;
  for (const model::VariableSpec& variable : *variables) {
    parameters.all += variable.shape.num_elements();
    if (variable.trainable) parameters.trainable += variable.shape.num_elements();
  }
  return parameters;
}

int64_t Dense(int64_t in, int64_t out) {
  return in * out + out;
}

TEST(ExampleModels, ResidualNetworksHaveTheirPublishedSizes) {
  EXPECT_EQ(ParametersOf("resnet-50").all, 25'636'712);
  EXPECT_EQ(ParametersOf("resnet-50-v1.5").trainable, 25'557'032);
}

TEST(ExampleModels, DenseNetHasItsPublishedSize) {
  EXPECT_EQ(ParametersOf("densenet-121").all, 8'062'504);
}

TEST(ExampleModels, BertAndGpt2HaveTheirPublishedSizes) {
  EXPECT_EQ(ParametersOf("bert-base").all, 109'482'240);
  EXPECT_EQ(ParametersOf("gpt2-124m").all, 124'439'808);
}

TEST(ExampleModels, NeuralMatrixFactorizationHasTwoPairsOfTablesAndAPerceptron) {
  constexpr int64_t kUsers = 138'493, kItems = 26'744, kFactors = 64, kFeatures = 128;
  const int64_t perceptron = Dense(256, 256) + Dense(256, 128) + Dense(128, 64);
  EXPECT_EQ(ParametersOf("neumf").all,
            (kUsers + kItems) * (kFactors + kFeatures) + perceptron + Dense(kFactors + 64, 1));
}

TEST(ExampleModels, TheTransformerHasSixBlocksPerSide) {
  constexpr int64_t kWidth = 512, kHidden = 2048, kVocabulary = 37'000, kPositions = 256;
  const int64_t attention = 4 * Dense(kWidth, kWidth), norm = 2 * kWidth;
  const int64_t feed_forward = Dense(kWidth, kHidden) + Dense(kHidden, kWidth);
  const int64_t encoder = attention + feed_forward + 2 * norm;
  const int64_t decoder = 2 * attention + feed_forward + 3 * norm;
  EXPECT_EQ(
      ParametersOf("transformer-base").all,
      (kVocabulary + kPositions) * kWidth + 6 * (encoder + decoder) + Dense(kWidth, kVocabulary));
}

TEST(ExampleModels, TheRecurrentTranslatorHasThreeCellsAndAttention) {
  constexpr int64_t kWidth = 256, kVocabulary = 5000;
  // Keras' GRU has two biases (reset_after).
  const int64_t cell = 3 * (kWidth * kWidth + kWidth * kWidth + 2 * kWidth);
  EXPECT_EQ(ParametersOf("nmt").all, 2 * kVocabulary * kWidth + 3 * cell +
                                         4 * Dense(kWidth, kWidth) + 2 * kWidth +
                                         Dense(kWidth, kVocabulary));
}

}  // namespace
}  // namespace tfjob
