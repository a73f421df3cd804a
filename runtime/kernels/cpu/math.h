// Defines elementary functions. The float versions have no branches, calls or tables, so gcc can
// vectorise the loops around them. Unless noted otherwise, they use the minimax polynomials of the
// Cephes library, and have a relative error below 3e-7 (about two units in the last place). They
// treat NaN, infinities, zeros and subnormals like <cmath>. The double versions call <cmath>.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tfjob::kernels::cpu {

inline float PowerOfTwo(int32_t exponent) {  // only for exponents of normal numbers
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

inline float Exp(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  // Adding 1.5 · 2²³ rounds to an integer, which the low bits of the sum contain.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const int32_t n = std::bit_cast<int32_t>(shifted) - 0x4B400000;
  const float whole = shifted - 12582912.0f;
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // Multiply by two powers of two, because 2ⁿ itself may be subnormal or too large.
  const int32_t half = n >> 1;
  return p * PowerOfTwo(half) * PowerOfTwo(n - half);
}
inline double Exp(double x) {
  return std::exp(x);
}

inline float Log(float x) {
  const bool tiny = x < FLT_MIN;
  const uint32_t bits = std::bit_cast<uint32_t>(tiny ? x * 8388608.0f : x);
  // Choose the exponent so that the mantissa is between sqrt(1/2) and sqrt(2).
  const int32_t exponent = static_cast<int32_t>(bits - 0x3F3504F3u) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = p * f * z - e * 2.12194440e-4f - 0.5f * z;
  y = f + y + e * 0.693359375f;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  y = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
  return x <= FLT_MAX ? y : x;  // the logarithms of +infinity and NaN are +infinity and NaN
}
inline double Log(double x) {
  return std::log(x);
}

inline float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}
inline double Sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

inline float Tanh(float x) {
  const float size = std::fabs(x);
  const float large = 1.0f - 2.0f / (Exp(2.0f * size) + 1.0f);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  return size < 0.625f ? small : std::copysign(large, x);
}
inline double Tanh(double x) {
  return std::tanh(x);
}

// Returns the error function of x, with an absolute error below 4e-7. Uses the power series
// (Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.5) near 0, and the
// approximation 7.1.26 elsewhere.
inline float Erf(float x) {
  const float z = x * x;
  float p = 1.480719282e-08f;
  p = p * z - 1.636584469e-07f;
  p = p * z + 1.646211437e-06f;
  p = p * z - 1.492565036e-05f;
  p = p * z + 1.205533298e-04f;
  p = p * z - 8.548327023e-04f;
  p = p * z + 5.223977625e-03f;
  p = p * z - 2.686617065e-02f;
  p = p * z + 1.128379167e-01f;
  p = p * z - 3.761263890e-01f;
  p = p * z + 1.128379167e+00f;
  const float size = std::fabs(x);
  const float t = 1.0f / (1.0f + 0.3275911f * size);
  float q = 1.061405429f;
  q = q * t - 1.453152027f;
  q = q * t + 1.421413741f;
  q = q * t - 0.284496736f;
  q = q * t + 0.254829592f;
  const float large = std::copysign(1.0f - q * t * Exp(-z), x);
  return size < 1.0f ? p * x : large;
}
inline double Erf(double x) {
  return std::erf(x);
}

}  // namespace tfjob::kernels::cpu
