#include "runtime/steps/step_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/graph/ops.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/steps/nodes.h"

namespace tfjob::steps {
namespace {

using model::layers::BatchNormalization;
using model::layers::Dense;

// Returns a linear model y = w x + b with one input, trained with SGD.
StepModel Linear(const std::string& prefix) {
  StepModel made;
  made.model = model::Sequential("linear", {{.name = "dense", .config = Dense{.units = 1}}});
  made.features = model::Features({1});
  made.variables = *model::Variables(made.model, made.features);
  for (model::VariableSpec& variable : made.variables) variable.name = prefix + variable.name;
  made.optimizer.kind = optimizer::Kind::kSgd;
  made.optimizer.learning_rate = 0.5;
  return made;
}

Emit Square() {
  return [](StepGraph& step, std::span<const graph::Output> in) {
    return std::vector{graph::Square(step.b, Sub(step.b, in[0], in[1]))};
  };
}

// Computes Σ in[0] / in[1].
Emit SumOver() {
  return [](StepGraph& step, std::span<const graph::Output> in) {
    return std::vector{Div(step.b, graph::Sum(step.b, in[0], {}), in[1])};
  };
}

// Returns a step that computes the mean squared error over the examples of all devices. If `train`
// is set, the step also performs one step of gradient descent.
Definition MeanSquaredError(bool train) {
  Definition made;
  made.inputs = {{"x", {DType::kFloat32, {1}}}, {"y", {DType::kFloat32, {1}}}};
  made.models = {Linear("1/")};
  made.nodes = {{"x", {}, InputNode(0)},
                {"y", {}, InputNode(1)},
                {"model", {{0}}, ModelNode(0, true)},
                {"errors", {{2}, {1}}, Square()},
                {"examples", {}, AllExamplesNode()},
                {"loss", {{3}, {4}}, SumOver()},
                {"kernel", {}, VariableNode(0, 0)},
                {"bias", {}, VariableNode(0, 1)},
                {"gradients", {{5}, {6}, {7}}, GradientNode()}};
  made.results = {{"errors", {3}},
                  {"loss", {5}, Reduction::kSum},
                  {"mean", {3}, Reduction::kMean, /*over_examples=*/true}};
  if (train) made.applications = {{0, {{8, 0}, {8, 1}}}};
  return made;
}

Tensor Column(const std::vector<float>& values) {
  Tensor made(DType::kFloat32, {static_cast<int64_t>(values.size()), 1});
  std::ranges::copy(values, made.data<float>().begin());
  return made;
}

struct Job {
  std::shared_ptr<Memory> memory;
  std::unique_ptr<StepRunner> runner;
};

Job Start(Definition definition, int devices) {
  Job job;
  job.memory = *Memory::Create({.device = exec::CpuDevice(), .devices = devices, .threads = 2});
  EXPECT_TRUE(job.memory->AddVariables(definition.models[0]).ok());
  auto runner = StepRunner::Create(std::move(definition), job.memory);
  EXPECT_TRUE(runner.ok()) << runner.status();
  if (runner.ok()) job.runner = *std::move(runner);
  return job;
}

StatusOr<std::vector<Tensor>> RunAlone(const Job& job, std::span<const Tensor> inputs, int64_t run,
                                       std::span<const int64_t> steps) {
  ASSIGN_OR_RETURN(const Totals totals, job.runner->Prepare(inputs[0].shape().dim(0)));
  return job.runner->Run(inputs, run, steps, totals);
}

std::vector<float> VariableOf(const Job& job, const std::string& name, int device = 0) {
  const Tensor value = (*job.memory->place(device).store->Get(name))->ToTensor();
  return {value.data<float>().begin(), value.data<float>().end()};
}

// d loss / d w is 2 Σ (w x + b - y) x / n. For w = b = 0, this is -2 Σ x y / n.
TEST(StepRunner, TakesAStepOfGradientDescent) {
  const Job job = Start(MeanSquaredError(true), 1);
  ASSERT_NE(job.runner, nullptr);
  const std::vector<Tensor> inputs = {Column({1, 2, 3}), Column({2, 4, 6})};
  const auto results = RunAlone(job, inputs, 0, std::vector<int64_t>{0});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].shape(), Shape({3, 1}));
  EXPECT_FLOAT_EQ((*results)[0].data<float>()[2], 36);
  EXPECT_FLOAT_EQ((*results)[1].data<float>()[0], 56.0F / 3);
  EXPECT_FLOAT_EQ((*results)[2].data<float>()[0], 56.0F / 3);
  EXPECT_FLOAT_EQ(VariableOf(job, "1/dense/kernel")[0], 28.0F / 3);
  EXPECT_FLOAT_EQ(VariableOf(job, "1/dense/bias")[0], 4);
}

TEST(StepRunner, DevicesTakeTheStepOfOneDevice) {
  const std::vector<Tensor> inputs = {Column({1, -2, 3, 0.5F, 7}), Column({2, 4, 6, 1, -3})};
  const Job one = Start(MeanSquaredError(true), 1);
  for (const int devices : {2, 3, 6}) {
    const Job several = Start(MeanSquaredError(true), devices);
    for (int64_t step = 0; step < 2; ++step) {
      const auto results = RunAlone(several, inputs, step, std::vector{step});
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ((*results)[0].shape(), Shape({5, 1})) << "the rows of all devices";
      if (step > 0) continue;
      EXPECT_FLOAT_EQ((*results)[0].data<float>()[4], 9);
      EXPECT_FLOAT_EQ((*results)[1].data<float>()[0], 66.0F / 5);
      EXPECT_FLOAT_EQ((*results)[2].data<float>()[0], 66.0F / 5);
    }
    if (devices == 2) {
      for (int64_t step = 0; step < 2; ++step)
        ASSERT_TRUE(RunAlone(one, inputs, step, std::vector{step}).ok());
    }
    for (const char* name : {"1/dense/kernel", "1/dense/bias"}) {
      const float expected = VariableOf(one, name)[0];
      EXPECT_NEAR(VariableOf(several, name)[0], expected, 1e-5 * std::abs(expected));
      EXPECT_EQ(VariableOf(several, name, devices - 1), VariableOf(several, name));
    }
  }
}

TEST(StepRunner, WithoutApplyTheVariablesStay) {
  const Job job = Start(MeanSquaredError(false), 1);
  EXPECT_FALSE(job.runner->changes(0));
  ASSERT_TRUE(
      RunAlone(job, std::vector{Column({1}), Column({2})}, 0, std::vector<int64_t>{0}).ok());
  EXPECT_EQ(VariableOf(job, "1/dense/kernel")[0], 0);
}

TEST(StepRunner, NoGradientFlowsThroughStopGradient) {
  Definition definition = MeanSquaredError(true);
  definition.nodes[3] = {"stop", {{2}}, StopGradientNode()};
  const Status checked = Check(definition);
  EXPECT_FALSE(checked.ok());
  EXPECT_NE(Message(checked).find("gradients"), std::string::npos) << checked;
}

std::string ErrorOf(const Definition& definition) {
  return std::string(Message(Check(definition)));
}

// The step only evaluates the model in training mode, which exchanges the statistics of the batch.
TEST(StepRunner, RefusesSynchronizedNormalizationOnSeveralDevices) {
  Definition step = MeanSquaredError(false);
  StepModel& model = step.models[0];
  model.model = model::Sequential(
      "normal", {{.name = "dense", .config = Dense{.units = 1}},
                 {.name = "norm", .config = BatchNormalization{.synchronized = true}}});
  model.variables = *model::Variables(model.model, model.features);
  EXPECT_NE(Start(step, 1).runner, nullptr);
  const std::shared_ptr<Memory> memory =
      *Memory::Create({.device = exec::CpuDevice(), .devices = 2, .threads = 2});
  ASSERT_TRUE(memory->AddVariables(model).ok());
  const Status status = StepRunner::Create(step, memory).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(Message(status).find("use synchronized: false"), std::string::npos) << status;
}

TEST(StepRunner, ErrorsNameTheResultAndSayWhatToChange) {
  Definition definition = MeanSquaredError(true);
  definition.results[0].value = {5};
  EXPECT_EQ(ErrorOf(definition),
            "result errors: expected one row per example, or a value that Reduce returns, got "
            "float32[] for 1013 examples");
  definition = MeanSquaredError(true);
  definition.results[2].over_examples = false;
  EXPECT_EQ(ErrorOf(definition),
            "result mean: expected a value whose shape does not depend on the number of examples, "
            "got float32[1013,1] for 1013 examples; reduce along axis 0");
  definition = MeanSquaredError(true);
  definition.applications[0].gradients.pop_back();
  EXPECT_EQ(ErrorOf(definition),
            "Apply: expected a gradient for each of the 2 trainable variables of model linear, got "
            "1");
  definition = MeanSquaredError(true);
  definition.applications[0].gradients = {{8, 1}, {8, 0}};
  EXPECT_EQ(ErrorOf(definition),
            "tried with 1013 examples: Apply: the gradient of variable 1/dense/kernel: expected "
            "float32[1,1], got float32[1]");
  definition = MeanSquaredError(true);
  definition.inputs[0].example.shape = Shape({2});
  EXPECT_EQ(ErrorOf(definition),
            "tried with 1013 examples: model: model linear: expected an input of examples of the "
            "type float32[1], got float32[1013,2]");
  definition = MeanSquaredError(true);
  definition.results[0].value = {3, 1};
  EXPECT_EQ(ErrorOf(definition),
            "tried with 1013 examples: result errors: expected one of the 1 outputs of the call, "
            "got output 1");
  definition = MeanSquaredError(true);
  definition.nodes[3].inputs[0].output = -1;
  EXPECT_EQ(ErrorOf(definition),
            "tried with 1013 examples: errors: expected one of the 1 outputs of the call, got "
            "output -1");
  definition = MeanSquaredError(true);
  definition.applications[0].gradients[1] = {8, 7};
  EXPECT_EQ(ErrorOf(definition),
            "tried with 1013 examples: Apply: the gradient of variable 1/dense/bias: expected one "
            "of the 2 outputs of the call, got output 7");
}

}  // namespace
}  // namespace tfjob::steps
