#include "runtime/steps/nodes.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/layer/regularizer.h"
#include "runtime/model/operations/operation.h"
#include "runtime/steps/step_graph.h"

namespace tfjob::steps {
namespace {

using graph::Output;
using Outputs = std::vector<Output>;
using Inputs = std::span<const Output>;

// Returns an error unless every input has one row per example, with the type that the model
// expects.
Status CheckModelInputs(const StepGraph& step, const StepModel& model, Inputs inputs) {
  if (inputs.size() != model.features.size()) {
    return InvalidArgument("model ", model.model.name, " takes ", model.features.size(),
                           " inputs, got ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::TensorType& type = step.b.type(inputs[i]);
    const graph::TensorType& expected = model.features[i];
    const bool fits = type.dtype == expected.dtype && type.shape.rank() > 0 &&
                      model::ExampleOf(type.shape) == expected.shape;
    if (fits) continue;
    return InvalidArgument("model ", model.model.name, ": expected an input of examples of the ",
                           "type ", expected.ToString(), ", got ", type.ToString());
  }
  return OkStatus();
}

// Stores the statistics that the call assigns, for later calls and for the updates of the step.
void KeepAssignments(const StepModel& model, const model::LayerCall& call,
                     StepGraph::ModelState& state) {
  for (const model::LayerCall::Assignment& assignment : call.assignments) {
    if (model.variables[assignment.variable].frozen_by_name) continue;
    state.current[assignment.variable] = assignment.value;
    state.assigned[assignment.variable] = true;
  }
}

// Returns an error unless the layer has no variables and accepts the inputs. Does not check the
// inputs of operations, which check them themselves.
Status CheckLayerInputs(const StepGraph& step, const model::LayerConfig& layer, Inputs inputs) {
  if (layer.As<model::layers::Operation>() != nullptr) return OkStatus();
  std::vector<graph::TensorType> types;
  for (const Output input : inputs) {
    const graph::TensorType& type = step.b.type(input);
    if (type.shape.rank() == 0)
      return InvalidArgument("expected a value with one row per example, got a scalar");
    types.push_back({type.dtype, model::ExampleOf(type.shape)});
  }
  RETURN_IF_ERROR(layer.OutputTypes(types).status());
  if (layer.Variables(types).empty()) return OkStatus();
  return InvalidArgument(
      "the layer has variables, which belong to a compiled model: put the layer ",
      "into a Model, compile it, and use Step::Call");
}

// Returns an error if a value with one row per example has fewer axes than another operand.
// According to NumPy's rules, broadcasting aligns the last axes, so rows would be matched with
// columns, and the result would have both a row and a column per example.
Status CheckAlignment(const StepGraph& step, const model::layers::Operation& operation,
                      Inputs inputs) {
  if (!operation.broadcasts()) return OkStatus();
  int rank = 0;
  for (const Output input : inputs) rank = std::max(rank, step.b.shape(input).rank());
  for (const Output input : inputs) {
    const Shape& shape = step.b.shape(input);
    if (shape.rank() == 0 || shape.rank() == rank || shape.dim(0) != step.examples) continue;
    return InvalidArgument("expected values whose axes of the examples are aligned, got ",
                           step.b.shape(inputs[0]).ToString(), " and ",
                           step.b.shape(inputs.back()).ToString(), " for ", step.examples,
                           " examples; use keepdims, ops::ExpandDims or ops::Reshape");
  }
  return OkStatus();
}

// Returns a seed that differs between replicas, for random ops without the argument `replica`.
Output SeedOf(StepGraph& step) {
  if (step.replica == 0) return step.seed;
  constexpr double kBetweenReplicas = 1'000'003;
  const double offset = static_cast<double>(step.replica) * kBetweenReplicas;
  return Add(step.b, step.seed, Scalar(step.b, DType::kInt64, offset));
}

}  // namespace

Emit InputNode(size_t input) {
  return [input](StepGraph& step, Inputs) { return Outputs{step.inputs[input]}; };
}

Emit AllExamplesNode() {
  return [](StepGraph& step, Inputs) { return Outputs{step.all_examples}; };
}

Emit ModelNode(size_t model, bool training) {
  return [model, training](StepGraph& step, Inputs inputs) -> Outputs {
    const StepModel& called = step.definition.models[model];
    if (training && HasPolicy(called.model, model::DTypePolicy::kMixedFloat16)) {
      return {step.b.Fail(Unimplemented(
          "model ", called.model.name,
          " has layers with the dtype policy mixed_float16, whose "
          "gradients need a scaled loss; a step of a program's own does not scale it. Use "
          "mixed_bfloat16, or Fit"))};
    }
    const Status fits = CheckModelInputs(step, called, inputs);
    if (!fits.ok()) return {step.b.Fail(fits)};
    StepGraph::ModelState& state = step.models[model];
    model::LayerCall call{.b = step.b,
                          .inputs = Outputs(inputs.begin(), inputs.end()),
                          .variables = state.current,
                          .training = training,
                          .step = step.run,
                          .seed = step.seed,
                          .replica = step.replica};
    Outputs outputs = Forward(called.model, call);
    for (Output& output : outputs) output = model::Widened(step.b, output);
    if (!step.b.ok()) return outputs;
    if (training) KeepAssignments(called, call, state);
    state.penalties.insert(state.penalties.end(), call.penalties.begin(), call.penalties.end());
    return outputs;
  };
}

Emit LayerNode(model::LayerConfig layer) {
  return [layer = std::move(layer)](StepGraph& step, Inputs inputs) -> Outputs {
    const Status fits = CheckLayerInputs(step, layer, inputs);
    if (!fits.ok()) return {step.b.Fail(fits)};
    model::LayerCall call{.b = step.b,
                          .inputs = Outputs(inputs.begin(), inputs.end()),
                          .training = true,
                          .step = step.run,
                          .seed = step.seed,
                          .replica = step.replica};
    const auto* operation = layer.As<model::layers::Operation>();
    if (operation == nullptr) return layer.Apply(call);
    step.alignment = CheckAlignment(step, *operation, inputs);
    return operation->ApplyToArrays(call);
  };
}

Emit VariableNode(size_t model, size_t variable) {
  return [model, variable](StepGraph& step, Inputs) {
    return Outputs{step.models[model].reads[variable]};
  };
}

Emit PenaltyNode(size_t model) {
  return [model](StepGraph& step, Inputs) -> Outputs {
    const StepGraph::ModelState& state = step.models[model];
    Output total = Scalar(step.b, DType::kFloat32, 0);
    for (const Output penalty : state.penalties) total = Add(step.b, total, penalty);
    const StepModel& of = step.definition.models[model];
    for (const size_t v : TrainableOf(of)) {
      const model::Regularizer& regularizer = of.variables[v].rules.regularizer;
      if (regularizer.present())
        total = Add(step.b, total, model::Penalty(step.b, regularizer, state.reads[v]));
    }
    return {total};
  };
}

Emit GradientNode() {
  return [](StepGraph& step, Inputs inputs) {
    return graph::Gradients(step.b, inputs[0], inputs.subspan(1));
  };
}

Emit StopGradientNode() {
  return [](StepGraph& step, Inputs inputs) {
    return Outputs{step.b.Add("Identity", {inputs[0]}, {{"stop_gradient", true}})};
  };
}

Emit RandomNormalNode(Shape example, double mean, double stddev) {
  return [example = std::move(example), mean, stddev](StepGraph& step, Inputs) {
    return Outputs{RandomNormal(step.b, step.run, step.seed, DType::kFloat32,
                                model::Batched(step.examples, example), mean, stddev,
                                step.replica)};
  };
}

Emit RandomUniformNode(Shape example, double low, double high) {
  return [example = std::move(example), low, high](StepGraph& step, Inputs) {
    return Outputs{RandomUniform(step.b, step.run, SeedOf(step), DType::kFloat32,
                                 model::Batched(step.examples, example), low, high)};
  };
}

Emit CrossEntropyNode() {
  return [](StepGraph& step, Inputs inputs) {
    const bool rows = step.b.dtype(inputs[0]) == step.b.dtype(inputs[1]);
    return Outputs{rows ? SoftmaxCrossEntropyWithLogits(step.b, inputs[1], inputs[0]).loss
                        : SparseSoftmaxCrossEntropyWithLogits(step.b, inputs[1], inputs[0]).loss};
  };
}

}  // namespace tfjob::steps
