// Describes ops that are computed on a GPU and on the CPU, with the same random operands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// A tensor with random values in [low, high], rounded to the dtype. Some floats are 0. If `special`
// is set, some floats are NaN or infinite. If `ascending` is set, the values are distinct int64
// numbers in [0, high), in ascending order, followed by some -1. If `whole` is set, all floats are
// whole numbers, so that some of them are equal. If `nan_at` is not negative, the float at this
// dense index is NaN. If `row_stride` is 0, it is chosen at random.
struct RandomOperand {
  Shape shape;
  DType dtype = DType::kFloat32;
  double low = -3, high = 3;
  bool special = false;
  bool ascending = false;
  int64_t row_stride = 0;
  bool whole = false;
  int64_t nan_at = -1;
};

struct Comparison {
  std::string op;
  Attributes attributes;
  std::vector<RandomOperand> inputs, outputs;
  // The largest error, relative to max(floor, |expected|). Results of half types may also differ in
  // the last bit, unless the tolerance is 0.
  double tolerance = 2e-6;
  double floor = 1;
};

// Returns the comparison. If any operand is float32, also returns the comparison with a half type
// in place of float32: bfloat16 if the seed is even, or float16 if it is odd. This excludes
// optimizers, which have no half types, ops whose cases draw the types of their operands, and
// AssignAdd of float32 values to a float64 variable.
std::vector<Comparison> WithHalfType(const Comparison& comparison, uint64_t seed);

}  // namespace tfjob::kernels::cuda
