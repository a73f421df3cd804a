// Defines the part of CUDA C++ that kernels may use. Every kernel file includes this header first.
// For a host compiler, emulator/shim.h declares the same part, so that tests can run the kernels on
// the emulator, which checks every access.
//
// Rules for kernels:
//   - A kernel has a unique name, and takes one trivially copyable struct of at most 4 KiB, which
//     is declared in parameters.h.
//   - Only Load, Store, LoadPair and StorePair read or write several elements at once.
//   - Blocks do not communicate within a launch.
//   - All threads of a block reach every __syncthreads, and all lanes every shuffle.
//   - Sums are added in an order that depends only on the shapes and, for the rows of tables, on
//     the ids.
#pragma once

#ifdef __CUDACC__

#include <cmath>
#include <cstdint>

#define TFJOB_DEVICE __device__ __forceinline__
#define TFJOB_UNROLLED _Pragma("unroll")  // use before a loop, as the next one
#define TFJOB_NOT_UNROLLED _Pragma("unroll 1")
#define TFJOB_PRAGMA(text) _Pragma(#text)
#define TFJOB_UNROLLED_BY(count) TFJOB_PRAGMA(unroll(count))
#define TFJOB_KERNEL(name, Parameter, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Parameter p)

TFJOB_DEVICE float4 Load(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
TFJOB_DEVICE void Store(float* to, float4 value) {
  *reinterpret_cast<float4*>(to) = value;
}

namespace tfjob {

// The half types of tensor/half.h, a header that nvcc cannot compile. Each conversion is one
// instruction, and rounds like the conversion in tensor/half.h, but may return another NaN.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  TFJOB_DEVICE explicit BFloat16(float value) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  TFJOB_DEVICE explicit operator float() const {
    return __uint_as_float(static_cast<uint32_t>(bits) << 16);
  }
};
struct Float16 {
  uint16_t bits;

  Float16() = default;
  TFJOB_DEVICE explicit Float16(float value) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  TFJOB_DEVICE explicit operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

}  // namespace tfjob

// Access four elements of a half type at once, in 8 aligned bytes.
template <typename Half>
TFJOB_DEVICE float4 Load(const Half* from) {
  struct alignas(8) Four {
    Half x, y, z, w;
  };
  const Four four = *reinterpret_cast<const Four*>(from);
  return {static_cast<float>(four.x), static_cast<float>(four.y), static_cast<float>(four.z),
          static_cast<float>(four.w)};
}
template <typename Half>
TFJOB_DEVICE void Store(Half* to, float4 value) {
  struct alignas(8) Four {
    Half x, y, z, w;
  };
  *reinterpret_cast<Four*>(to) = {Half(value.x), Half(value.y), Half(value.z), Half(value.w)};
}

// Access two elements of a half type at once, in 4 aligned bytes. The first is in the lower bits.
template <typename Half>
TFJOB_DEVICE uint32_t LoadPair(const Half* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}
template <typename Half>
TFJOB_DEVICE void StorePair(Half* to, uint32_t pair) {
  *reinterpret_cast<uint32_t*>(to) = pair;
}

#else

#include "runtime/kernels/cuda/emulator/shim.h"

#define TFJOB_DEVICE inline
#define TFJOB_UNROLLED
#define TFJOB_NOT_UNROLLED
#define TFJOB_UNROLLED_BY(count)
// Registers the kernel with the emulator under its name.
#define TFJOB_KERNEL(name, Parameter, threads)                               \
  static void name##Body(const Parameter& p);                                \
  static const ::tfjob::kernels::cuda::Registration name##Registration(      \
      #name, threads, sizeof(Parameter),                                     \
      [](const void* p) { name##Body(*static_cast<const Parameter*>(p)); }); \
  static void name##Body([[maybe_unused]] const Parameter& p)

using tfjob::kernels::cuda::Load;
using tfjob::kernels::cuda::LoadPair;
using tfjob::kernels::cuda::Store;
using tfjob::kernels::cuda::StorePair;

#endif

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarp = 32;

// Returns the sum over the warp, on every lane.
TFJOB_DEVICE float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

// Returns whether a kernel of this program has refused its inputs. Variables must then keep their
// values. `refusal` points to a Refusal (stream.h), as three numbers, or is null.
TFJOB_DEVICE bool Refused(const int64_t* refusal) {
  return refusal != nullptr && *refusal != 0;
}

// Return the cosine and the sine of x·π. CUDA's cos and sin are not used, because they need local
// memory.
TFJOB_DEVICE double CosPi(double x) {
#ifdef __CUDACC__
  return cospi(x);
#else
  return std::cos(x * 3.14159265358979323846);
#endif
}
TFJOB_DEVICE double SinPi(double x) {
#ifdef __CUDACC__
  return sinpi(x);
#else
  return std::sin(x * 3.14159265358979323846);
#endif
}

}  // namespace
