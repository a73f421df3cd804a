#include "runtime/kernels/cpu/scaled_rows.h"

#include <array>
#include <cstddef>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tfjob::kernels::cpu {
namespace {

using Terms = std::span<const ScaledRow>;

constexpr int kNarrow = 8, kWide = 16;  // elements of a vector: AVX2, AVX-512

// The number of vectors of sums that stay in registers while all terms are added. AVX2 has 16
// registers, and additions are only fast if several of them are in progress.
constexpr int kMostVectors = 12;

// Defines a vector. Copy it with memcpy, because the floats in memory need not have its alignment.
template <int kWidth>
struct VectorOf;
template <>
struct VectorOf<kNarrow> {
  using Type [[gnu::vector_size(32)]] = float;
};
template <>
struct VectorOf<kWide> {
  using Type [[gnu::vector_size(64)]] = float;
};

// Adds the terms to kVectors vectors of kWidth elements.
template <int kWidth, int kVectors>
[[gnu::always_inline]] inline void AddTo(Terms terms, const float* rows, float* sums) {
  using Vector = typename VectorOf<kWidth>::Type;
  Vector total[kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kVectors; ++i) __builtin_memcpy(&total[i], sums + i * kWidth, sizeof(Vector));
  for (const ScaledRow& term : terms) {
    const float* const row = rows + term.offset;
    const float value = term.value;
#pragma GCC unroll 12
    for (int i = 0; i < kVectors; ++i) {
      Vector part;
      __builtin_memcpy(&part, row + i * kWidth, sizeof(Vector));
      total[i] += value * part;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kVectors; ++i) __builtin_memcpy(sums + i * kWidth, &total[i], sizeof(Vector));
}

using AddFunction = void (*)(Terms terms, const float* rows, float* sums);

template <int kVectors>
void AddNarrow(Terms terms, const float* rows, float* sums) {
  AddTo<kNarrow, kVectors>(terms, rows, sums);
}

#if defined(__x86_64__)
template <int kVectors>
[[gnu::target("avx512f,fma")]] void AddWide(Terms terms, const float* rows, float* sums) {
  AddTo<kWide, kVectors>(terms, rows, sums);
}
#endif

// Contains the functions for one width of vectors. Function i adds i + 1 vectors.
struct Functions {
  int64_t width = 0;
  std::array<AddFunction, kMostVectors> add{};
};

template <size_t... kIndices>
Functions FindFunctions([[maybe_unused]] bool wide, std::index_sequence<kIndices...>) {
#if defined(__x86_64__)
  if (wide) return {kWide, {AddWide<static_cast<int>(kIndices) + 1>...}};
#endif
  return {kNarrow, {AddNarrow<static_cast<int>(kIndices) + 1>...}};
}

// Writes the terms of values [begin, count), after the first `found` terms.
int64_t FindRest(int64_t begin, int64_t count, const float* values, int64_t step, ScaledRow* terms,
                 int64_t found) {
  for (int64_t i = begin; i < count; ++i) {
    terms[found] = {static_cast<int32_t>(i * step), values[i]};
    found += values[i] != 0 ? 1 : 0;  // no branch, because it could not be predicted
  }
  return found;
}

int64_t FindOneByOne(int64_t count, const float* values, int64_t step, ScaledRow* terms) {
  return FindRest(0, count, values, step, terms, 0);
}

#if defined(__x86_64__)
// Treats terms as integers of 64 bits, with the value in the upper half.
[[gnu::target("avx512f,popcnt")]] int64_t FindEightAtATime(int64_t count, const float* values,
                                                           int64_t step, ScaledRow* terms) {
  const __m512i not_zero = _mm512_set1_epi64(0x7fffffff00000000);  // without the sign
  const __mmask8 all = 0xff;
  const __m512i eight = _mm512_set1_epi64(8 * step);
  __m512i offsets =
      _mm512_set_epi64(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
  int64_t found = 0, i = 0;
  for (; i + 8 <= count; i += 8, offsets = _mm512_add_epi64(offsets, eight)) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    const __m512i shifted =
        _mm512_maskz_slli_epi64(all, _mm512_maskz_cvtepu32_epi64(all, bits), 32);
    const __mmask8 kept = _mm512_test_epi64_mask(shifted, not_zero);
    _mm512_storeu_si512(terms + found,
                        _mm512_maskz_compress_epi64(kept, _mm512_or_si512(shifted, offsets)));
    found += __builtin_popcount(kept);
  }
  return FindRest(i, count, values, step, terms, found);
}
#endif

}  // namespace

bool HasWideVectors() {
#if defined(__x86_64__)
  static const bool kWideVectors = __builtin_cpu_supports("avx512f") != 0;
  return kWideVectors;
#else
  return false;
#endif
}

int64_t FindScaledRows(int64_t count, const float* values, int64_t step, ScaledRow* terms,
                       [[maybe_unused]] bool wide) {
#if defined(__x86_64__)
  if (wide) return FindEightAtATime(count, values, step, terms);
#endif
  return FindOneByOne(count, values, step, terms);
}

RowSum::RowSum(int64_t length, bool wide) {
  const Functions functions = FindFunctions(wide, std::make_index_sequence<kMostVectors>());
  const int64_t vectors = length / functions.width;
  const int64_t blocks = (vectors + kMostVectors - 1) / kMostVectors;
  for (int64_t i = 0; i < blocks; ++i) {  // of similar sizes
    const int64_t begin = vectors * i / blocks, end = vectors * (i + 1) / blocks;
    blocks_.push_back(
        {functions.add[static_cast<size_t>(end - begin) - 1], begin * functions.width});
  }
}

}  // namespace tfjob::kernels::cpu
