#include "runtime/model/apply_layer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/wrapped_layers.h"
#include "runtime/tensor/half.h"

namespace tfjob::model {
namespace {

using graph::Output;

bool IsFloat32OrHalf(DType dtype) {
  return dtype == DType::kFloat32 || IsHalf(dtype);
}

// Casts x to `dtype` if x is float32 or has a half type. Returns any other value, including an
// invalid Output, unchanged.
Output CastFloat(graph::Builder& b, Output x, DType dtype) {
  if (!b.ok() || !x.valid() || !IsFloat32OrHalf(b.dtype(x))) return x;
  return Cast(b, x, dtype);
}

std::vector<TensorType> WithFloats(std::span<const TensorType> types, DType dtype) {
  std::vector<TensorType> changed(types.begin(), types.end());
  for (TensorType& type : changed) {
    if (IsFloat32OrHalf(type.dtype)) type.dtype = dtype;
  }
  return changed;
}

DType ComputeTypeOf(const Layer& layer) {
  return ComputeType(layer.policy.value_or(DTypePolicy::kFloat32));
}

}  // namespace

// Layer classes require float32, so the types passed to them have float32 in place of half types.
StatusOr<std::vector<TensorType>> TypesAfterLayer(const Layer& layer, const LayerConfig& config,
                                                  std::span<const TensorType> in) {
  if (config.keeps_types()) return config.OutputTypes(in);
  ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                   config.OutputTypes(WithFloats(in, DType::kFloat32)));
  return WithFloats(types, ComputeTypeOf(layer));
}

std::vector<VariableSpec> VariablesOfConfig(const LayerConfig& config,
                                            std::span<const TensorType> in) {
  if (config.keeps_types()) return config.Variables(in);
  return config.Variables(WithFloats(in, DType::kFloat32));
}

std::vector<Output> ApplyLayer(const Layer& layer, const LayerConfig& config, LayerCall& call) {
  if (config.keeps_types()) return config.Apply(call);
  const DType compute = ComputeTypeOf(layer);
  const DType inside = config.computes_in_float32() ? DType::kFloat32 : compute;
  for (Output& input : call.inputs) input = CastFloat(call.b, input, inside);
  for (Output& variable : call.variables) variable = CastFloat(call.b, variable, inside);
  std::vector<Output> outputs = config.Apply(call);
  for (Output& output : outputs) output = CastFloat(call.b, output, compute);
  for (Output& penalty : call.penalties) penalty = CastFloat(call.b, penalty, DType::kFloat32);
  return outputs;
}

bool SetPolicy(Model& model, DTypePolicy policy) {
  bool changed = false;
  for (Layer& layer : model.layers) changed = SetPolicy(layer, policy) || changed;
  for (Call& call : model.calls) {
    const Layer& layer = model.layers[static_cast<size_t>(call.layer)];
    if (call.config && layer.policy) call.config = WithPolicy(*call.config, *layer.policy);
  }
  return changed;
}

bool HasPolicy(const Model& model, DTypePolicy policy) {
  return std::ranges::any_of(model.layers, [policy](const Layer& layer) {
    if (const auto* nested = layer.config.As<NestedModel>())
      return HasPolicy(*nested->model, policy);
    return layer.policy == policy && HasPolicy(layer);
  });
}

TensorType Widened(TensorType type) {
  if (IsHalf(type.dtype)) type.dtype = DType::kFloat32;
  return type;
}

Output Widened(graph::Builder& b, Output x) {
  if (!b.ok() || !x.valid() || !IsHalf(b.dtype(x))) return x;
  return Cast(b, x, DType::kFloat32);
}

}  // namespace tfjob::model
