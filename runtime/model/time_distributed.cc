#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/layers/activity_regularization.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model::layers {
namespace {

using graph::Output;

TensorType StepOf(const TensorType& sequence) {
  return {sequence.dtype, ExampleOf(sequence.shape)};
}

// Returns the call of the wrapped layer that corresponds to `call`.
LayerCall Inner(const LayerCall& call, const Layer& layer, Output input, Output mask) {
  return {.b = call.b,
          .inputs = {input},
          .masks = {mask},
          .variables = call.variables,
          .training = call.training,
          .trainable = call.trainable && layer.trainable,
          .step = call.step,
          .seed = call.seed,
          .replica = call.replica};
}

Output Reshaped(graph::Builder& b, Output x, std::vector<int64_t> first, int dropped) {
  const std::vector<int64_t>& dims = b.shape(x).dims();
  first.insert(first.end(), dims.begin() + dropped, dims.end());
  return graph::Reshape(b, x, Shape(std::move(first)));
}

// Swaps the axes of the batch and of the steps, which are the first two.
Output StepsAndBatchSwapped(graph::Builder& b, Output x) {
  std::vector<int64_t> order(b.shape(x).dims().size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return Transpose(b, x, std::move(order));
}

// Returns whether the steps depend on each other in training, because each one changes variables
// that the next one uses.
bool Learns(const Layer& layer) {
  if (!layer.trainable) return false;
  if (layer.config.As<BatchNormalization>() != nullptr) return true;
  if (const auto* each = layer.config.As<TimeDistributed>()) return Learns(*each->layer);
  const auto* nested = layer.config.As<NestedModel>();
  return nested != nullptr && std::ranges::any_of(nested->model->layers, Learns);
}

// Returns whether calls of the layer add penalties for activities to the loss. The wrapper's own
// layer does not count: Keras ignores its activity regularizer.
bool Penalizes(const Layer& layer, bool wrapped) {
  const bool own =
      layer.activity_regularizer.present() || layer.config.As<ActivityRegularization>() != nullptr;
  if (own && !wrapped) return true;
  if (const auto* each = layer.config.As<TimeDistributed>()) return Penalizes(*each->layer, true);
  if (const auto* both = layer.config.As<Bidirectional>()) {
    return both->layer->activity_regularizer.present() ||
           (both->backward_layer != nullptr &&
            both->backward_layer->activity_regularizer.present());
  }
  const auto* nested = layer.config.As<NestedModel>();
  return nested != nullptr && std::ranges::any_of(nested->model->layers, [](const Layer& inner) {
           return Penalizes(inner, false);
         });
}

// Returns Unimplemented if TimeDistributed does not support the layer.
Status CheckWrapped(const Layer& layer) {
  const auto* normalization = layer.config.As<BatchNormalization>();
  Status status;
  if (normalization != nullptr && normalization->synchronized) {
    status =
        Unimplemented("synchronized: true is not supported in TimeDistributed; set it to false");
  }
  if (const auto* each = layer.config.As<TimeDistributed>()) status = CheckWrapped(*each->layer);
  if (const auto* nested = layer.config.As<NestedModel>()) {
    for (const Layer& inner : nested->model->layers) {
      if (status.ok()) status = CheckWrapped(inner);
    }
  }
  return status.ok() ? status : Annotate(status, Describe(layer));
}

// Returns the number of each step, [steps], which differs from those of other training steps.
Output StepNumbers(graph::Builder& b, Output step, int64_t steps) {
  Tensor numbers(DType::kInt64, {steps});
  std::iota(numbers.data<int64_t>().begin(), numbers.data<int64_t>().end(), 0);
  const Output first = Mul(b, step, Const(b, Tensor::Scalar<int64_t>(steps)));
  return graph::Add(b, Const(b, std::move(numbers)), first);
}

// Applies the layer to the steps in sequence, in a loop.
class StepLoop {
 public:
  StepLoop(const Layer& layer, LayerCall& call, Output x, Output mask)
      : layer_(layer), call_(call), x_(x), mask_(mask), scan_(call.b, call.b.shape(x).dim(1)) {}

  Output Run(const std::vector<VariableSpec>& variables) {
    LayerCall inner = InnerCall();
    std::vector<int> states;  // the state of each variable, or -1
    int count = 0;
    for (size_t i = 0; i < variables.size(); ++i) {
      const Output value = call_.variables[i];
      states.push_back(variables[i].assigned ? count++ : -1);
      inner.variables.push_back(variables[i].assigned ? scan_.State(value)
                                                      : scan_.Invariant(value));
    }
    std::vector<Output> next = inner.variables;
    const std::vector<Output> outputs = ApplyLayer(layer_, layer_.config, inner);
    if (!scan_.body().ok()) return call_.b.Fail(scan_.body().status());
    for (const LayerCall::Assignment& assignment : inner.assignments)
      next[assignment.variable] = assignment.value;
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i] >= 0) scan_.SetNext(states[i], next[i]);
    }
    scan_.Stack(outputs[0]);
    for (const Output penalty : inner.penalties) scan_.Stack(penalty);
    const graph::ScanBuilder::Results results = scan_.Finish();
    if (!call_.b.ok()) return {};
    for (const LayerCall::Assignment& assignment : inner.assignments) {
      const auto state = static_cast<size_t>(states[assignment.variable]);
      call_.assignments.push_back({assignment.variable, results.states[state]});
    }
    for (size_t i = 1; i < results.outputs.size(); ++i)
      call_.penalties.push_back(Sum(call_.b, results.outputs[i], {}));
    return StepsAndBatchSwapped(call_.b, results.outputs[0]);
  }

 private:
  Output Sequence(Output value) { return scan_.Sequence(StepsAndBatchSwapped(call_.b, value)); }

  LayerCall InnerCall() {
    LayerCall inner{.b = scan_.body(),
                    .inputs = {Sequence(x_)},
                    .training = call_.training,
                    .trainable = call_.trainable && layer_.trainable,
                    .replica = call_.replica};
    if (mask_.valid()) inner.masks = {Sequence(mask_)};
    if (call_.training) {
      inner.step = scan_.Sequence(StepNumbers(call_.b, call_.step, call_.b.shape(x_).dim(1)));
      inner.seed = scan_.Invariant(call_.seed);
    }
    return inner;
  }

  const Layer& layer_;
  LayerCall& call_;
  const Output x_, mask_;
  graph::ScanBuilder scan_;
};

}  // namespace

StatusOr<std::vector<TensorType>> TimeDistributed::OutputTypes(
    std::span<const TensorType> in) const {
  const TensorType& x = in[static_cast<size_t>(input)];
  if (layer == nullptr) return InvalidArgument("expected a layer to wrap");
  if (in.size() != (mask == kNoInput ? 1 : 2) || x.shape.rank() < 2 || x.shape.dim(0) < 1) {
    return InvalidArgument("expected one input, sequences of shape [steps,features,…], got ",
                           in.size(), " inputs, the first ", x.shape.ToString());
  }
  const TensorType step = StepOf(x);
  auto types = TypesAfterLayer(*layer, layer->config, {&step, 1});
  if (types.ok() && types->size() != 1)
    types = InvalidArgument("expected a layer with one output, got ", types->size());
  if (types.ok() && layer->activity_regularizer.present())
    types = Unimplemented(
        "activity_regularizer is not supported in TimeDistributed; give it to the "
        "TimeDistributed layer itself");
  if (!types.ok()) return Annotate(types.status(), Describe(*layer));
  RETURN_IF_ERROR(CheckWrapped(*layer));
  (*types)[0].shape = Batched(x.shape.dim(0), (*types)[0].shape);
  return types;
}

std::vector<VariableSpec> TimeDistributed::Variables(std::span<const TensorType> in) const {
  const TensorType step = StepOf(in[static_cast<size_t>(input)]);
  return VariablesOf(*layer, {&step, 1});
}

std::vector<Output> TimeDistributed::Apply(LayerCall& call) const {
  graph::Builder& b = call.b;
  const Output x = call.inputs[static_cast<size_t>(input)];
  const auto given = static_cast<size_t>(mask == kNoInput ? input : mask);
  const Output steps_mask = mask == kNoInput ? call.mask(given) : call.inputs[given];
  call.output_masks = {steps_mask};
  const graph::NameScope scope(b, layer->name);
  const bool learns = call.training && call.trainable && Learns(*layer);
  if (learns || Penalizes(*layer, /*wrapped=*/true)) {
    const TensorType step = StepOf(call.ExampleTypes()[static_cast<size_t>(input)]);
    return {StepLoop(*layer, call, x, steps_mask).Run(VariablesOf(*layer, {&step, 1}))};
  }
  const int64_t batch = b.shape(x).dim(0), steps = b.shape(x).dim(1);
  const Output folded_mask =
      steps_mask.valid() ? Reshaped(b, steps_mask, {batch * steps}, 2) : Output();
  LayerCall inner = Inner(call, *layer, Reshaped(b, x, {batch * steps}, 2), folded_mask);
  const std::vector<Output> outputs = ApplyLayer(*layer, layer->config, inner);
  if (!b.ok()) return {Output()};
  if (!inner.penalties.empty()) {
    return {b.Fail(Unimplemented(Describe(*layer),
                                 " contains an activity_regularizer, which is not supported in "
                                 "TimeDistributed"))};
  }
  return {Reshaped(b, outputs[0], {batch, steps}, 1)};
}

}  // namespace tfjob::model::layers
