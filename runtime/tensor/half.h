// Defines the two 16-bit floating-point element types of tensors. They are storage formats:
// arithmetic converts the operands to float, and rounds the result once.
//
//              sign  exponent  fraction  largest     smallest normal  smallest
//   BFloat16      1         8         7  3.39e38     2^-126           2^-133
//   Float16       1         5        10  65504       2^-14            2^-24      (IEEE binary16)
//
// Every conversion to float is exact. A conversion from float rounds to the nearest value, and ties
// to the value with an even fraction. Values that are too large become infinity. A NaN stays a NaN.
// The conversions have no branches, so that compilers can vectorise loops over them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/tensor/dtype.h"

namespace tfjob {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t odd = wide >> 16 & 1;
    const uint32_t rounded = (wide + 0x7FFF + odd) >> 16;
    const uint32_t nan = wide >> 16 | 0x40;  // a quiet NaN with the same sign
    bits = static_cast<uint16_t>((wide & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
  }
  static constexpr BFloat16 FromBits(uint16_t bits) {
    BFloat16 value{};
    value.bits = bits;
    return value;
  }

  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t sign = wide >> 16 & 0x8000;
    const uint32_t size = wide & 0x7FFFFFFF;
    // A normal number: the exponent's bias changes from 127 to 15. A carry from rounding may
    // increase the exponent, even to that of infinity.
    const uint32_t odd = size >> 13 & 1;
    const uint32_t normal = (size - (uint32_t{112} << 23) + 0xFFF + odd) >> 13;
    // A subnormal number: the last bit of the fraction of 0.5 + size is worth 2^-24, so the
    // addition performs the rounding.
    const uint32_t small =
        std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5F) - std::bit_cast<uint32_t>(0.5F);
    const uint32_t special = size > 0x7F800000 ? 0x7E00 : 0x7C00;
    const uint32_t finite = size < uint32_t{113} << 23 ? small : normal;
    bits = static_cast<uint16_t>(sign | (size >= uint32_t{143} << 23 ? special : finite));
  }
  static constexpr Float16 FromBits(uint16_t bits) {
    Float16 value{};
    value.bits = bits;
    return value;
  }

  explicit operator float() const {
    const uint32_t size = bits & 0x7FFF;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t normal = (size << 13) + (uint32_t{112} << 23);
    const uint32_t special = normal + (uint32_t{112} << 23);
    // A subnormal number is size · 2^-24, which is computed as (2^-14 + size · 2^-24) - 2^-14.
    const float small = std::bit_cast<float>((size << 13) + (uint32_t{113} << 23)) - 0x1p-14F;
    const uint32_t finite = size < 0x400 ? std::bit_cast<uint32_t>(small) : normal;
    return std::bit_cast<float>(sign | (size >= 0x7C00 ? special : finite));
  }
};

static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2, "arrays are copied as bytes");

constexpr bool IsHalf(DType dtype) {
  return dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

// Convert `count` elements. The ranges must not overlap.
template <typename Half>
void ToFloat(const Half* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
template <typename Half>
void FromFloat(const float* from, Half* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = Half(from[i]);
}

}  // namespace tfjob
