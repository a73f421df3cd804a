#include "tests/interop/json_tensor.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "runtime/tensor/half.h"

namespace tfjob {
namespace {

template <typename T>
Json ValuesOf(const Tensor& tensor) {
  Json values = Json::array();
  using Printed = std::conditional_t<sizeof(T) == 2, float, T>;
  for (T value : tensor.data<T>()) values.push_back(static_cast<Printed>(value));
  return values;
}

template <typename T>
void Fill(const Json& values, Tensor& tensor) {
  using Read = std::conditional_t<sizeof(T) == 2, float, T>;
  for (size_t i = 0; i < values.size(); ++i)
    tensor.data<T>()[i] = static_cast<T>(values[i].get<Read>());
}

}  // namespace

Json ToJson(const Tensor& tensor) {
  Json json = {{"dtype", Name(tensor.dtype())}, {"shape", tensor.shape().dims()}};
  switch (tensor.dtype()) {
    case DType::kFloat32:
      json["values"] = ValuesOf<float>(tensor);
      break;
    case DType::kFloat64:
      json["values"] = ValuesOf<double>(tensor);
      break;
    case DType::kInt32:
      json["values"] = ValuesOf<int32_t>(tensor);
      break;
    case DType::kInt64:
      json["values"] = ValuesOf<int64_t>(tensor);
      break;
    case DType::kUInt8:
      json["values"] = ValuesOf<uint8_t>(tensor);
      break;
    case DType::kBool:
      json["values"] = ValuesOf<bool>(tensor);
      break;
    case DType::kBFloat16:
      json["values"] = ValuesOf<BFloat16>(tensor);
      break;
    case DType::kFloat16:
      json["values"] = ValuesOf<Float16>(tensor);
      break;
  }
  return json;
}

Tensor ToTensor(const Json& json) {
  Tensor tensor(*ParseDType(json["dtype"].get<std::string>()),
                Shape(json["shape"].get<std::vector<int64_t>>()));
  const Json& values = json["values"];
  switch (tensor.dtype()) {
    case DType::kFloat32:
      Fill<float>(values, tensor);
      break;
    case DType::kFloat64:
      Fill<double>(values, tensor);
      break;
    case DType::kInt32:
      Fill<int32_t>(values, tensor);
      break;
    case DType::kInt64:
      Fill<int64_t>(values, tensor);
      break;
    case DType::kUInt8:
      Fill<uint8_t>(values, tensor);
      break;
    case DType::kBool:
      Fill<bool>(values, tensor);
      break;
    case DType::kBFloat16:
      Fill<BFloat16>(values, tensor);
      break;
    case DType::kFloat16:
      Fill<Float16>(values, tensor);
      break;
  }
  return tensor;
}

}  // namespace tfjob
