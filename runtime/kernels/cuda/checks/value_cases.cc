#include <algorithm>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

// Random integers lie in [low, high).
RandomOperand IdsBelow(int64_t bound, int64_t count, DType dtype) {
  return {Shape({count}), dtype, 0, static_cast<double>(bound)};
}

}  // namespace

// Both devices must draw bit-identical words, and Dropout must keep the same elements.
std::vector<Comparison> RandomNumberCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape shape = DrawShape(random);
  const RandomOperand number{Shape({}), DType::kInt64, 0, 1e9};
  const RandomOperand large{Shape({}), DType::kInt64, -9e18, 9e18};
  const Attributes words = {{"op_id", int64_t{7}}, {"replica", int64_t{3}}};
  Attributes dropout = words, uniform = words, normal = words;
  dropout.Set("rate", 0.3);
  uniform.Set("minval", -2.0);
  uniform.Set("maxval", 5.0);
  normal.Set("mean", 0.5);
  normal.Set("stddev", 3.0);
  std::vector<Comparison> all;
  for (const char* op : {"Dropout", "DropoutGrad"})
    all.push_back({op, dropout, {{shape}, number, large}, {{shape}}, 0});
  all.push_back({"RandomUniform", uniform, {number, large}, {{shape}}, 1e-7});
  for (const char* op : {"RandomNormal", "TruncatedNormal"})
    all.push_back({op, normal, {number, large}, {{shape}}, 1e-6});
  return all;
}

std::vector<Comparison> CastCases(uint64_t seed) {
  const DType types[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,    DType::kInt64,
                         DType::kUInt8,   DType::kBool,    DType::kBFloat16, DType::kFloat16};
  std::vector<Comparison> all;
  for (const DType from : types) {
    for (const DType to : types) {
      const double tolerance = IsHalf(to) ? 0 : 1e-7;
      for (const double high : {3.0, 250.0}) {
        PhiloxStream random(++seed);
        const Shape shape = DrawShape(random);
        const double low = from == DType::kUInt8 ? 0 : -high;
        all.push_back({"Cast", {}, {{shape, from, low, high}}, {{shape, to}}, tolerance});
      }
      // The values exceed the range of integers.
      const Shape many({400});
      if (from == DType::kFloat32 || from == DType::kFloat64 || IsHalf(from))
        all.push_back({"Cast", {}, {{many, from, -1e20, 1e20, true}}, {{many, to}}, tolerance});
    }
  }
  return all;
}

// Some inputs contain a single NaN, which a kernel that skips a part of its input may not find.
std::vector<Comparison> CheckNumericsCases(uint64_t seed) {
  PhiloxStream random(seed);
  std::vector<Comparison> all;
  for (const Shape& shape : {DrawMatrix(random), Shape({5000}), Shape({0, 3})}) {
    const auto add = [&](const RandomOperand& input) {
      all.push_back(
          {"CheckNumerics", {{"message", std::string("the input")}}, {input}, {{shape}}, 0});
    };
    const int64_t count = shape.num_elements();
    add({shape});
    if (count == 0) continue;
    add({.shape = shape, .nan_at = random.Below(static_cast<uint32_t>(count))});
    add({.shape = shape, .nan_at = count - 1});
    add({.shape = shape, .special = true});
  }
  return all;
}

std::vector<Comparison> GatherCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8}) {
    PhiloxStream random(seed);
    const int64_t rows = Draw(random, {1, 7, 100}), cols = Draw(random, {1, 3, 4, 16, 33, 64});
    const int64_t count = Draw(random, {0, 1, 31, 200});
    for (const DType ids : {DType::kInt32, DType::kInt64}) {
      all.push_back({"Gather",
                     {},
                     {{Shape({rows, cols}), dtype, 0, 100}, IdsBelow(rows, count, ids)},
                     {{Shape({count, cols}), dtype}},
                     0});
    }
  }
  return all;
}

// The numbers of ids are close to the sizes of the parts in which ids are sorted and numbered, and
// rows are summed.
std::vector<Comparison> SumOfEqualIdsCases(uint64_t seed) {
  constexpr int64_t kCounts[] = {1, 2, 63, 64, 65, 200, 511, 512, 513, 1024, 1025, 2600};
  const int64_t count = kCounts[seed % 12];
  std::vector<Comparison> all;
  for (const int64_t distinct : {int64_t{1}, int64_t{2}, int64_t{40}, int64_t{100000}}) {
    PhiloxStream random(static_cast<uint64_t>(count + distinct));
    const int64_t cols = Draw(random, {1, 5, 32, 40});
    const DType dtype = random.Below(2) == 0 ? DType::kInt32 : DType::kInt64;
    const RandomOperand values{Shape({count, cols}), DType::kFloat32, 0, 1};  // sums do not cancel
    all.push_back({"DeduplicateIndexedSlices",
                   {},
                   {IdsBelow(distinct, count, dtype), values},
                   {{Shape({count}), DType::kInt64}, values},
                   2e-5});
    const int64_t rows = std::min<int64_t>(distinct, 300);
    all.push_back({"UnsortedSegmentSum",
                   {{"num_segments", rows}},
                   {values, IdsBelow(rows, count, dtype)},
                   {{Shape({rows, cols})}},
                   2e-5});
  }
  return all;
}

}  // namespace tfjob::kernels::cuda
