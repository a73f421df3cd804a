#include "runtime/graph/ops.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/layers/normalization.h"
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

// Returns step `step` of a value [batch,steps,…].
Output StepAt(graph::Builder& b, Output x, int64_t step) {
  const std::vector<int64_t>& dims = b.shape(x).dims();
  std::vector<int64_t> begin(dims.size(), 0), size = dims;
  begin[1] = step;
  size[1] = 1;
  const int64_t batch = dims[0];
  return Reshaped(b, graph::Slice(b, x, std::move(begin), std::move(size)), {batch}, 2);
}

// Applies the layer to the steps in sequence. Each step uses the values that the previous step
// assigned to variables.
Output StepByStep(const Layer& layer, LayerCall& call, Output x, Output mask) {
  graph::Builder& b = call.b;
  const int64_t batch = b.shape(x).dim(0), steps = b.shape(x).dim(1);
  if (steps > graph::kMostJoined) {
    return b.Fail(InvalidArgument(Describe(layer), " changes its variables in each step; it takes ",
                                  "at most ", graph::kMostJoined, " steps, got ", steps));
  }
  std::vector<Output> outputs;
  for (int64_t step = 0; step < steps && b.ok(); ++step) {
    LayerCall inner =
        Inner(call, layer, StepAt(b, x, step), mask.valid() ? StepAt(b, mask, step) : Output());
    const std::vector<Output> output = ApplyLayer(layer, layer.config, inner);
    if (!b.ok()) return {};
    outputs.push_back(Reshaped(b, output[0], {batch, 1}, 1));
    call.assignments = inner.assignments;
    for (const LayerCall::Assignment& assignment : inner.assignments)
      call.variables[assignment.variable] = assignment.value;
  }
  return graph::Concat(b, std::move(outputs), 1);
}

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
  const auto* const normalization = layer->config.As<BatchNormalization>();
  if (types.ok() && normalization != nullptr && normalization->synchronized) {
    types =
        Unimplemented("synchronized: true is not supported in TimeDistributed; set it to false");
  }
  if (!types.ok()) return Annotate(types.status(), Describe(*layer));
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
  if (StepsApart() && call.training && call.trainable && layer->trainable)
    return {StepByStep(*layer, call, x, steps_mask)};
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
  if (!inner.assignments.empty()) {
    return {b.Fail(Unimplemented(Describe(*layer),
                                 " contains a layer that changes its variables in "
                                 "each step; only BatchNormalization itself may"))};
  }
  return {Reshaped(b, outputs[0], {batch, steps}, 1)};
}

bool TimeDistributed::StepsApart() const {
  return layer->config.As<BatchNormalization>() != nullptr;
}

}  // namespace tfjob::model::layers
