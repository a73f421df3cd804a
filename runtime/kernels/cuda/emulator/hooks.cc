// Defines the functions that code compiled with -fsanitize=thread calls before each memory access.
// Also defines Load and Store, which access several elements at once: such code calls no function
// before accesses of 16 bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/kernels/cuda/emulator/shim.h"

namespace tfjob::kernels::cuda {
namespace {

void AccessVector(const void* address, unsigned bytes, shadow::Kind kind, const void* pc) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  if (shadow::Enabled()) {
    shadow::Access(number, bytes, kind, pc);
  } else if (number % bytes != 0) {
    Report("alignment", "access of " + std::to_string(bytes) + " bytes");
  }
}

template <typename T>
float4 LoadQuad(const T* from, const void* pc) {
  AccessVector(from, 4 * sizeof(T), shadow::Kind::kRead, pc);
  return {static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2]),
          static_cast<float>(from[3])};
}

template <typename T>
void StoreQuad(T* to, float4 value, const void* pc) {
  AccessVector(to, 4 * sizeof(T), shadow::Kind::kWrite, pc);
  to[0] = T(value.x);
  to[1] = T(value.y);
  to[2] = T(value.z);
  to[3] = T(value.w);
}

template <typename Half>
uint32_t LoadTwo(const Half* from, const void* pc) {
  AccessVector(from, 2 * sizeof(Half), shadow::Kind::kRead, pc);
  return from[0].bits | uint32_t{from[1].bits} << 16;
}

template <typename Half>
void StoreTwo(Half* to, uint32_t pair, const void* pc) {
  AccessVector(to, 2 * sizeof(Half), shadow::Kind::kWrite, pc);
  to[0] = Half::FromBits(static_cast<uint16_t>(pair));
  to[1] = Half::FromBits(static_cast<uint16_t>(pair >> 16));
}

[[maybe_unused]] void AccessRange(void* address, size_t bytes, shadow::Kind kind, const void* pc) {
  for (size_t i = 0; i < bytes; i += 4) {
    shadow::Access(reinterpret_cast<uintptr_t>(address) + i,
                   static_cast<unsigned>(std::min<size_t>(4, bytes - i)), kind, pc);
  }
}

}  // namespace

float4 Load(const float* from) {
  return LoadQuad(from, __builtin_return_address(0));
}
float4 Load(const BFloat16* from) {
  return LoadQuad(from, __builtin_return_address(0));
}
float4 Load(const Float16* from) {
  return LoadQuad(from, __builtin_return_address(0));
}

void Store(float* to, float4 value) {
  StoreQuad(to, value, __builtin_return_address(0));
}
void Store(BFloat16* to, float4 value) {
  StoreQuad(to, value, __builtin_return_address(0));
}
void Store(Float16* to, float4 value) {
  StoreQuad(to, value, __builtin_return_address(0));
}

uint32_t LoadPair(const BFloat16* from) {
  return LoadTwo(from, __builtin_return_address(0));
}
uint32_t LoadPair(const Float16* from) {
  return LoadTwo(from, __builtin_return_address(0));
}
void StorePair(BFloat16* to, uint32_t pair) {
  StoreTwo(to, pair, __builtin_return_address(0));
}
void StorePair(Float16* to, uint32_t pair) {
  StoreTwo(to, pair, __builtin_return_address(0));
}

}  // namespace tfjob::kernels::cuda

// Builds with a sanitizer compile the kernels without the calls, so they need no hooks.
#ifdef TFJOB_SHADOW
using tfjob::kernels::cuda::AccessRange;
namespace shadow = tfjob::kernels::cuda::shadow;

#define TFJOB_HOOK(name, size, kind)                                                               \
  void __tsan_##name(void* address) {                                                              \
    shadow::Access(reinterpret_cast<uintptr_t>(address), size, kind, __builtin_return_address(0)); \
  }
#define TFJOB_HOOKS(size)                                     \
  TFJOB_HOOK(read##size, size, shadow::Kind::kRead)           \
  TFJOB_HOOK(write##size, size, shadow::Kind::kWrite)         \
  TFJOB_HOOK(unaligned_read##size, size, shadow::Kind::kRead) \
  TFJOB_HOOK(unaligned_write##size, size, shadow::Kind::kWrite)

extern "C" {
TFJOB_HOOKS(1)
TFJOB_HOOKS(2)
TFJOB_HOOKS(4)
TFJOB_HOOKS(8)
TFJOB_HOOKS(16)
void __tsan_init() {
  shadow::Enable();
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* address, size_t bytes) {
  AccessRange(address, bytes, shadow::Kind::kRead, __builtin_return_address(0));
}
void __tsan_write_range(void* address, size_t bytes) {
  AccessRange(address, bytes, shadow::Kind::kWrite, __builtin_return_address(0));
}
void* __tsan_memset(void* address, int value, size_t bytes) {
  AccessRange(address, bytes, shadow::Kind::kWrite, __builtin_return_address(0));
  return std::memset(address, value, bytes);
}
}
#endif
