// Converts elements between all dtypes, and adds floats to doubles.
#include <type_traits>

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Converts a float to an integer. A float outside the integer's range becomes the nearest integer
// in the range, and NaN becomes 0. `least` and `most` are the limits of the range. As floats, they
// may be rounded away from zero.
template <typename Out, typename In>
TFJOB_DEVICE Out Saturate(In value, Out least, Out most) {
  if (value >= static_cast<In>(most)) return most;
  if (value <= static_cast<In>(least)) return least;
  return value == value ? static_cast<Out>(value) : static_cast<Out>(0);
}

template <typename Out>
struct To {
  template <typename In>
  TFJOB_DEVICE static Out From(In value) {
    return static_cast<Out>(value);
  }
};
template <>
struct To<bool> {
  template <typename In>
  TFJOB_DEVICE static bool From(In value) {
    return value != static_cast<In>(0);
  }
};
template <>
struct To<int32_t> {
  TFJOB_DEVICE static int32_t From(float value) {
    return Saturate<int32_t>(value, INT32_MIN, INT32_MAX);
  }
  TFJOB_DEVICE static int32_t From(double value) {
    return Saturate<int32_t>(value, INT32_MIN, INT32_MAX);
  }
  template <typename In>
  TFJOB_DEVICE static int32_t From(In value) {
    return static_cast<int32_t>(value);
  }
};
template <>
struct To<int64_t> {
  TFJOB_DEVICE static int64_t From(float value) {
    return Saturate<int64_t>(value, INT64_MIN, INT64_MAX);
  }
  TFJOB_DEVICE static int64_t From(double value) {
    return Saturate<int64_t>(value, INT64_MIN, INT64_MAX);
  }
  template <typename In>
  TFJOB_DEVICE static int64_t From(In value) {
    return static_cast<int64_t>(value);
  }
};
template <>
struct To<uint8_t> {
  TFJOB_DEVICE static uint8_t From(float value) { return Saturate<uint8_t>(value, 0, UINT8_MAX); }
  TFJOB_DEVICE static uint8_t From(double value) { return Saturate<uint8_t>(value, 0, UINT8_MAX); }
  template <typename In>
  TFJOB_DEVICE static uint8_t From(In value) {
    return static_cast<uint8_t>(value);
  }
};

template <>
struct To<BFloat16> {
  template <typename In>
  TFJOB_DEVICE static BFloat16 From(In value) {
    return BFloat16(static_cast<float>(value));
  }
};
template <>
struct To<Float16> {
  template <typename In>
  TFJOB_DEVICE static Float16 From(In value) {
    return Float16(static_cast<float>(value));
  }
};

struct Offsets {
  int64_t in, out;
};

template <typename In, typename Out>
TFJOB_DEVICE void Convert(const CastParameter& p, Offsets offsets) {
  const In value = static_cast<const In*>(p.in)[offsets.in];
  Out& out = static_cast<Out*>(p.out)[offsets.out];
  if constexpr (std::is_same_v<In, Out>) {
    out = value;
  } else if constexpr (std::is_same_v<In, BFloat16> || std::is_same_v<In, Float16>) {
    out = To<Out>::From(static_cast<float>(value));
  } else {
    out = To<Out>::From(value);
  }
}

template <typename In>
TFJOB_DEVICE void ConvertFrom(const CastParameter& p, Offsets offsets) {
  switch (p.to) {
    case CastType::kFloat32:
      return Convert<In, float>(p, offsets);
    case CastType::kFloat64:
      return Convert<In, double>(p, offsets);
    case CastType::kInt32:
      return Convert<In, int32_t>(p, offsets);
    case CastType::kInt64:
      return Convert<In, int64_t>(p, offsets);
    case CastType::kUInt8:
      return Convert<In, uint8_t>(p, offsets);
    case CastType::kBool:
      return Convert<In, bool>(p, offsets);
    case CastType::kBFloat16:
      return Convert<In, BFloat16>(p, offsets);
    case CastType::kFloat16:
      return Convert<In, Float16>(p, offsets);
  }
}

}  // namespace

TFJOB_KERNEL(Cast, CastParameter, kCastThreads) {
  const uint32_t element = blockIdx.x * kCastThreads + threadIdx.x;
  if (element >= p.count || Refused(p.refusal)) return;
  const Offsets offsets{element / p.in_cols * p.in_stride + element % p.in_cols,
                        element / p.out_cols * p.out_stride + element % p.out_cols};
  switch (p.from) {
    case CastType::kFloat32:
      return ConvertFrom<float>(p, offsets);
    case CastType::kFloat64:
      return ConvertFrom<double>(p, offsets);
    case CastType::kInt32:
      return ConvertFrom<int32_t>(p, offsets);
    case CastType::kInt64:
      return ConvertFrom<int64_t>(p, offsets);
    case CastType::kUInt8:
      return ConvertFrom<uint8_t>(p, offsets);
    case CastType::kBool:
      return ConvertFrom<bool>(p, offsets);
    case CastType::kBFloat16:
      return ConvertFrom<BFloat16>(p, offsets);
    case CastType::kFloat16:
      return ConvertFrom<Float16>(p, offsets);
  }
}

// Adds elements of type float32 to elements of type float64.
TFJOB_KERNEL(AddToDoubles, CastParameter, kCastThreads) {
  const uint32_t element = blockIdx.x * kCastThreads + threadIdx.x;
  if (element >= p.count || Refused(p.refusal)) return;
  const float value =
      static_cast<const float*>(p.in)[element / p.in_cols * p.in_stride + element % p.in_cols];
  static_cast<double*>(p.out)[element / p.out_cols * p.out_stride + element % p.out_cols] +=
      static_cast<double>(value);
}

}  // namespace tfjob::kernels::cuda
