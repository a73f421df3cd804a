#include "runtime/device/cuda/fake_layout.h"

#include <cstring>

#include "runtime/tensor/half.h"

namespace tfjob::device::cuda {

float ValueAt(const void* matrix, const FakeLayout& layout, int64_t element) {
  const std::byte* const from = layout.At(matrix, element);
  const auto load = [from](auto value) {
    std::memcpy(static_cast<void*>(&value), from, sizeof value);
    return static_cast<float>(value);
  };
  if (layout.type == kBlasBFloat16) return load(BFloat16());
  return layout.type == kBlasFloat16 ? load(Float16()) : load(0.0F);
}

void StoreValue(std::byte* to, const FakeLayout& layout, float value) {
  const auto store = [to](const auto& rounded) {
    std::memcpy(to, static_cast<const void*>(&rounded), sizeof rounded);
  };
  if (layout.type == kBlasBFloat16) return store(BFloat16(value));
  if (layout.type == kBlasFloat16) return store(Float16(value));
  store(value);
}

}  // namespace tfjob::device::cuda
