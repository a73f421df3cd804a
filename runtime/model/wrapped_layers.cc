#include "runtime/model/wrapped_layers.h"

#include <memory>
#include <utility>

#include "runtime/model/apply_layer.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/operations/operation.h"
#include "runtime/model/rnn.h"
#include "runtime/model/shape.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model {
namespace {

using LayerPointer = std::shared_ptr<const Layer>;

// Returns a copy of the config in which each wrapped layer is replaced with the result of `change`.
template <typename Change>
LayerConfig WithWrapped(const LayerConfig& config, const Change& change) {
  const auto replace = [&change](LayerPointer& layer) {
    if (layer != nullptr) layer = change(*layer);
  };
  if (const auto* each = config.As<layers::TimeDistributed>()) {
    layers::TimeDistributed copy = *each;
    replace(copy.layer);
    return copy;
  }
  if (const auto* both = config.As<layers::Bidirectional>()) {
    layers::Bidirectional copy = *both;
    replace(copy.layer);
    replace(copy.backward_layer);
    return copy;
  }
  if (const auto* rnn = config.As<layers::RNN>()) {
    layers::RNN copy = *rnn;
    replace(copy.cell);
    return copy;
  }
  if (const auto* stack = config.As<layers::StackedRNNCells>()) {
    layers::StackedRNNCells copy = *stack;
    for (LayerPointer& cell : copy.cells) replace(cell);
    return copy;
  }
  return config;
}

}  // namespace

bool SetPolicy(Layer& layer, DTypePolicy policy) {
  if (const auto* nested = layer.config.As<NestedModel>()) {
    auto copy = std::make_shared<Model>(*nested->model);
    const bool changed = SetPolicy(*copy, policy);
    layer.config = NestedModel{std::move(copy)};
    return changed;
  }
  if (layer.policy || !HasPolicy(layer)) return false;
  layer.policy = policy;
  layer.config = WithPolicy(layer.config, policy);
  return true;
}

LayerConfig WithPolicy(const LayerConfig& config, DTypePolicy policy) {
  return WithWrapped(config, [policy](const Layer& wrapped) {
    auto copy = std::make_shared<Layer>(wrapped);
    SetPolicy(*copy, policy);
    return copy;
  });
}

bool HasPolicy(const Layer& layer) {
  return layer.config.As<layers::InputLayer>() == nullptr &&
         layer.config.As<layers::Operation>() == nullptr;
}

Status SharePolicy(Layer& layer) {
  Status status;
  layer.config = WithWrapped(layer.config, [&](const Layer& wrapped) {
    auto copy = std::make_shared<Layer>(wrapped);
    if (status.ok() && copy->policy && copy->policy != layer.policy) {
      status = InvalidArgument(Describe(layer), ": dtype: its policy is ",
                               layer.policy ? Name(*layer.policy) : "not set", ", but that of ",
                               Describe(*copy), " in it is ", Name(*copy->policy),
                               "; give both the same one");
    }
    if (layer.policy) SetPolicy(*copy, *layer.policy);
    return copy;
  });
  return status;
}

}  // namespace tfjob::model
