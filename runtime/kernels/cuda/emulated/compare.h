// Tests kernels for GPUs on the emulator: compares their results with those of the kernels for
// CPUs, and checks that the emulator reports no invalid access.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/checks/comparison.h"
#include "runtime/kernels/cuda/table.h"

namespace tfjob::kernels::cuda {

// Prepares the op for both devices, and runs it on each, first with the given dtypes and then with
// a half type (WithHalfType). The seed determines the values, the padding of rows, which addresses
// are unaligned, whether an output uses the memory of an input (if the table's entry allows it),
// and the order in which the emulator runs threads. Reports through gtest any differences, invalid
// accesses, and elements that were not written. An op that updates variables runs a second time,
// after another kernel has refused its inputs, and must then change no variable.
void Compare(const Comparison& comparison, uint64_t seed);
void CompareAll(const std::vector<Comparison>& comparisons, uint64_t seed);

// Like Compare, but runs the op on the given GPU, and returns the first report, or "" if there is
// none.
std::string FirstReport(const Comparison& comparison, uint64_t seed, const GpuAccess& gpu);

// Checks that the emulator has recorded no report since the last call.
void ExpectNoReports(const std::string& what);

}  // namespace tfjob::kernels::cuda
