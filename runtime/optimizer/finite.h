// Checks whether numbers are finite, that is, neither NaN nor infinite. Reads the memory once,
// divided among the threads of a pool, and does not allocate memory.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/thread_pool.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::optimizer {

// Returns whether all values are finite. If `pool` is null, uses only the calling thread.
bool AllFinite(std::span<const float> values, ThreadPool* pool = nullptr);
bool AllFinite(std::span<const double> values, ThreadPool* pool = nullptr);
// Like the functions above, for values of any type except the half types. Integers are always
// finite.
bool AllFinite(DType dtype, std::span<const std::byte> values, ThreadPool* pool = nullptr);

}  // namespace tfjob::optimizer
