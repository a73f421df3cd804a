#include "runtime/graph/passes/constants.h"

#include <algorithm>

#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

template <typename T>
std::optional<double> UniformOf(const Tensor& tensor) {
  const auto values = tensor.data<T>();
  using Real = std::conditional_t<sizeof(T) == 2, float, T>;
  const auto real = [&](T value) { return static_cast<Real>(value); };
  const bool equal =
      std::ranges::all_of(values, [&](T value) { return real(value) == real(values[0]); });
  if (values.empty() || !equal) return std::nullopt;
  return static_cast<double>(real(values[0]));
}

}  // namespace

std::optional<double> UniformValue(const Graph& graph, Output output) {
  const Node& node = graph.node(output);
  if (node.op == "Fill") {
    const double* value = node.attributes.Find<double>("value");
    if (value == nullptr) return std::nullopt;
    const DType dtype = node.outputs[0].dtype;
    if (dtype == DType::kBFloat16) return static_cast<float>(BFloat16(static_cast<float>(*value)));
    if (dtype == DType::kFloat16) return static_cast<float>(Float16(static_cast<float>(*value)));
    return *value;
  }
  if (node.op != "Const") return std::nullopt;
  const Tensor& tensor = *node.attributes.Find<Tensor>("value");
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return UniformOf<float>(tensor);
    case DType::kFloat64:
      return UniformOf<double>(tensor);
    case DType::kInt32:
      return UniformOf<int32_t>(tensor);
    case DType::kBFloat16:
      return UniformOf<BFloat16>(tensor);
    case DType::kFloat16:
      return UniformOf<Float16>(tensor);
    case DType::kInt64:  // a double cannot represent every int64
    case DType::kUInt8:
    case DType::kBool:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Tensor> ScalarOf(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return Tensor::Scalar(static_cast<float>(value));
    case DType::kFloat64:
      return Tensor::Scalar(value);
    case DType::kInt32:
      return Tensor::Scalar(static_cast<int32_t>(value));
    case DType::kBFloat16:
      return Tensor::Scalar(BFloat16(static_cast<float>(value)));
    case DType::kFloat16:
      return Tensor::Scalar(Float16(static_cast<float>(value)));
    default:
      return std::nullopt;
  }
}

}  // namespace tfjob::graph
