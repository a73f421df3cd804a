// Writes the training graphs of the example models as GraphDefs, and reads them back.
#include "runtime/graph/graph_def/graph_def.h"

#include <gtest/gtest.h>

#include "runtime/model/build.h"
#include "tests/numerics/example_model.h"

namespace tfjob::model {
namespace {

class ExampleGraphs : public testing::TestWithParam<const char*> {};

TEST_P(ExampleGraphs, ReadBackEqual) {
  const Model model = ReadExample(GetParam());
  BuildOptions options{.batch_size = 4};
  for (const auto& stated : StatedInputs(model)) options.features.push_back(*stated);
  const auto outputs = OutputTypes(model, options.features);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  options.objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                         .labels = {DType::kFloat32, (*outputs)[0].shape}}};
  options.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  FindMasks(model, options);
  for (const Mode mode : {Mode::kTrain, Mode::kPredict}) {
    options.mode = mode;
    const auto built = Build(model, options);
    ASSERT_TRUE(built.ok()) << built.status();
    const auto bytes = graph::WriteGraphDef(built->graph);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto read = graph::ReadGraphDef(*bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == built->graph);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExampleGraphs,
                         testing::Values("neumf-small", "bert-small", "gpt2-small",
                                         "transformer-small", "nmt-small", "mnist-cnn",
                                         "resnet-small", "densenet-small"));

}  // namespace
}  // namespace tfjob::model
