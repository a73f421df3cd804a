#include "runtime/tensor/dtype.h"

#include <array>

namespace tfjob {
namespace {

struct Entry {
  DType dtype;
  size_t size;
  std::string_view name;
};

constexpr std::array<Entry, 8> kEntries = {{
    {DType::kFloat32, 4, "float32"},
    {DType::kFloat64, 8, "float64"},
    {DType::kInt32, 4, "int32"},
    {DType::kUInt8, 1, "uint8"},
    {DType::kInt64, 8, "int64"},
    {DType::kBool, 1, "bool"},
    {DType::kBFloat16, 2, "bfloat16"},
    {DType::kFloat16, 2, "float16"},
}};

const Entry& Find(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return entry;
  }
  return kEntries[0];
}

}  // namespace

size_t SizeOf(DType dtype) {
  return Find(dtype).size;
}

std::string_view Name(DType dtype) {
  return Find(dtype).name;
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromTensorFlow(int number) {
  for (const Entry& entry : kEntries) {
    if (static_cast<int>(entry.dtype) == number) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace tfjob
