#include "runtime/model/apply_layer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/layers/activations.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/wrapped_layers.h"
#include "runtime/model/wrappers.h"
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

bool IsInteger(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
}

// Returns whether Keras computes results of integers in integers, which rounds or overflows, so
// that they differ from the results of the same numbers as floats. Such layers reject integers.
bool RoundsIntegers(const LayerConfig& config) {
  constexpr std::string_view kClasses[] = {"AdditiveAttention", "Dot", "GroupNormalization",
                                           "LayerNormalization", "RMSNormalization"};
  if (std::ranges::find(kClasses, config.class_name()) != std::end(kClasses)) return true;
  const auto* relu = config.As<layers::ReLU>();
  return relu != nullptr && relu->max_value && *relu->max_value != std::floor(*relu->max_value);
}

// Returns the types that a layer gets for inputs of these types: float32 in place of half types
// and, if the layer rejects integers, in place of integers. If there is only one input, a bool
// counts as an integer; if there are several, it may be a mask.
std::vector<TensorType> TypesInside(const LayerConfig& config, std::span<const TensorType> in) {
  std::vector<TensorType> types = WithFloats(in, DType::kFloat32);
  if (config.As<layers::Average>() != nullptr) {  // a mean of integers is no integer
    for (TensorType& type : types) {
      if (type.dtype == DType::kInt32 || type.dtype == DType::kInt64) type.dtype = DType::kFloat32;
    }
  }
  if (config.OutputTypes(types).ok() || RoundsIntegers(config)) return types;
  std::vector<TensorType> floats = types;
  for (TensorType& type : floats) {
    const bool number = IsInteger(type.dtype) || (type.dtype == DType::kBool && in.size() == 1);
    if (number) type.dtype = DType::kFloat32;
  }
  return config.OutputTypes(floats).ok() ? floats : types;
}

DType ComputeTypeOf(const Layer& layer) {
  return ComputeType(layer.policy.value_or(DTypePolicy::kFloat32));
}

// Casts floats other than float64, and integers that the layer gets as floats, to `dtype`.
void CastInputs(const LayerConfig& config, DType dtype, LayerCall& call) {
  if (!call.b.ok()) return;
  const std::vector<TensorType> types = TypesInside(config, call.ExampleTypes());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (types[i].dtype == DType::kFloat32) call.inputs[i] = Cast(call.b, call.inputs[i], dtype);
  }
}

}  // namespace

// Layer classes require float32, so the types passed to them have float32 in place of half types.
StatusOr<std::vector<TensorType>> TypesAfterLayer(const Layer& layer, const LayerConfig& config,
                                                  std::span<const TensorType> in) {
  if (config.keeps_types()) return config.OutputTypes(in);
  ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                   config.OutputTypes(TypesInside(config, in)));
  return WithFloats(types, ComputeTypeOf(layer));
}

std::vector<VariableSpec> VariablesOfConfig(const LayerConfig& config,
                                            std::span<const TensorType> in) {
  if (config.keeps_types()) return config.Variables(in);
  return config.Variables(TypesInside(config, in));
}

std::vector<Output> ApplyLayer(const Layer& layer, const LayerConfig& config, LayerCall& call) {
  if (config.keeps_types()) return config.Apply(call);
  const DType compute = ComputeTypeOf(layer);
  const DType inside = config.computes_in_float32() ? DType::kFloat32 : compute;
  CastInputs(config, inside, call);
  for (Output& variable : call.variables) variable = CastFloat(call.b, variable, inside);
  std::vector<Output> outputs = config.Apply(call);
  for (Output& output : outputs) output = CastFloat(call.b, output, compute);
  for (Output& penalty : call.penalties) penalty = CastFloat(call.b, penalty, DType::kFloat32);
  return outputs;
}

TensorType WithoutDouble(const LayerConfig& config, TensorType type) {
  const bool keeps = config.keeps_types() && config.As<layers::TimeDistributed>() == nullptr;
  if (type.dtype == DType::kFloat64 && !keeps) type.dtype = DType::kFloat32;
  return type;
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
