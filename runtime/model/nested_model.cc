#include "runtime/model/nested_model.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/model/layers/adaptive_pooling.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/operations/custom_layer.h"
#include "runtime/model/operations/operation.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model {
namespace {

struct Effort {
  int64_t calls = 0;  // the number of calls, inputs and masks, also in nested models
  int depth = 1;
};

Effort EffortOf(const Model& model);

// Returns the total number of windows along all axes if the layer is one of these pooling layers,
// and otherwise 0.
template <typename... Poolings>
int64_t WindowsOf(const LayerConfig& layer) {
  int64_t windows = 0;
  const auto count = [&windows](const auto* pooling) {
    if (pooling == nullptr) return;
    for (const int64_t size : pooling->output_size) windows += size;
  };
  (count(layer.As<Poolings>()), ...);
  return windows;
}

// Returns the number of parts that a layer computes with separate ops.
int64_t PartsOf(const LayerConfig& layer) {
  if (const auto* conv = layer.As<layers::Conv3D>()) return conv->window.size[0];
  if (const auto* conv = layer.As<layers::Conv3DTranspose>()) return conv->window.size[0];
  // Convolves the inputs and the state, with dropout once per gate.
  if (const auto* conv = layer.As<layers::ConvLSTM3D>()) return 8 * conv->window.size[0];
  if (const auto* operation = layer.As<layers::Operation>()) return operation->sections;
  if (const auto* custom = layer.As<layers::CustomLayer>()) {
    int64_t parts = 1;
    for (const auto& step : custom->steps) parts += step.operation.sections;
    return parts;
  }
  const int64_t windows =
      WindowsOf<layers::AdaptiveMaxPooling1D, layers::AdaptiveMaxPooling2D,
                layers::AdaptiveMaxPooling3D, layers::AdaptiveAveragePooling1D,
                layers::AdaptiveAveragePooling2D, layers::AdaptiveAveragePooling3D>(layer);
  return std::max<int64_t>(windows, 1);
}

// Returns the effort of one call of the layer, including the calls inside it.
Effort EffortOf(const Layer& layer) {
  if (const auto* nested = layer.config.As<NestedModel>()) return EffortOf(*nested->model);
  const auto* both = layer.config.As<layers::Bidirectional>();
  if (both != nullptr && both->layer != nullptr) {
    const auto& backward = both->backward_layer == nullptr ? both->layer : both->backward_layer;
    return {PartsOf(both->layer->config) + PartsOf(backward->config), 0};
  }
  const auto* wrapper = layer.config.As<layers::TimeDistributed>();
  if (wrapper == nullptr || wrapper->layer == nullptr) return {PartsOf(layer.config), 0};
  Effort wrapped = EffortOf(*wrapper->layer);
  ++wrapped.depth;
  return wrapped;
}

Effort EffortOf(const Model& model) {
  Effort whole;
  std::vector<int64_t> per_call;
  for (const Layer& layer : model.layers) {
    const Effort own = EffortOf(layer);
    per_call.push_back(own.calls);
    whole.depth = std::max(whole.depth, own.depth + 1);
  }
  for (const Call& call : model.calls) {
    const int64_t calls = per_call[static_cast<size_t>(call.layer)];
    const auto inputs = static_cast<int64_t>(call.inputs.size() + call.masks.size());
    whole.calls = std::min(whole.calls + calls + inputs, kMostCalls + 1);
  }
  return whole;
}

}  // namespace

std::vector<VariableSpec> NestedModel::Variables(std::span<const TensorType> in) const {
  StatusOr<std::vector<VariableSpec>> variables = model::Variables(*model, in);
  ENFORCE(variables.ok(), "OutputTypes has accepted these inputs");
  return *std::move(variables);
}

Status CheckEffort(const Model& model) {
  const Effort effort = EffortOf(model);
  if (effort.depth > kMostLevels) {
    return InvalidArgument("model ", model.name, " nests models more than ", kMostLevels,
                           " levels deep");
  }
  if (effort.calls > kMostCalls) {
    return InvalidArgument("model ", model.name, " has more than ", kMostCalls,
                           " calls and inputs of calls, counting those of nested models, the ",
                           "planes of 3D kernels, the windows of adaptive pooling, and the parts ",
                           "of split");
  }
  return OkStatus();
}

}  // namespace tfjob::model
