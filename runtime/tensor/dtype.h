// Defines the element types. They have the same numbers as in TensorFlow (types.proto), because
// checkpoints store these numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tfjob {

struct BFloat16;  // half.h
struct Float16;   // half.h

enum class DType : uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kFloat16 = 19
};

size_t SizeOf(DType dtype);
std::string_view Name(DType dtype);  // NumPy's and Keras' name: "float32"
std::optional<DType> ParseDType(std::string_view name);
std::optional<DType> DTypeFromTensorFlow(int number);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kFloat16;
};

}  // namespace tfjob
