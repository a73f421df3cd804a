// Tests kernels for GPUs on the emulator: compares their results with those of the kernels for
// CPUs, and checks that the emulator reports no invalid access.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/table.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// A tensor with random values in [low, high], which are rounded to the dtype. Some floats are 0. If
// `special` is set, some are NaN or infinite. If `ascending` is set, the values are distinct int64
// numbers in [0, high), in ascending order, followed by some -1. If `whole` is set, floats are
// whole numbers, so some of them are equal. If `row_stride` is 0, it is chosen at random.
struct RandomOperand {
  Shape shape;
  DType dtype = DType::kFloat32;
  double low = -3, high = 3;
  bool special = false;
  bool ascending = false;
  int64_t row_stride = 0;
  bool whole = false;
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

// Returns the comparison and, in most cases, a second one with a half type in place of float32:
// bfloat16 if the seed is even, float16 if it is odd. There is no second one if no operand is
// float32, or if the op updates variables with an optimizer.
std::vector<Comparison> WithHalfType(const Comparison& comparison, uint64_t seed);

// Prepares the op for both devices, and runs it on each, first with the given dtypes and then with
// a half type (WithHalfType). The seed determines the values, the padding of rows, which addresses
// are unaligned, whether an output uses the memory of an input where the entry allows it, and the
// order in which the emulator runs threads. Reports through gtest any differences, invalid
// accesses, and elements that were not written. An op that updates variables runs a second time,
// after another kernel has refused its inputs, and must then change no variable.
void Compare(const Comparison& comparison, uint64_t seed);

// Like Compare, but runs the op on the given GPU, and returns the first report, or "" if there is
// none.
std::string FirstReport(const Comparison& comparison, uint64_t seed, const GpuAccess& gpu);

// Checks that the emulator has recorded no report since the last call.
void ExpectNoReports(const std::string& what);

}  // namespace tfjob::kernels::cuda
