// Checks whether numbers are finite, that is, neither NaN nor infinite. Reads the memory once,
// divided among the threads of a pool, and does not allocate memory.
#pragma once

#include <span>

#include "runtime/base/thread_pool.h"

namespace tfjob::optimizer {

// Returns whether all values are finite. If `pool` is null, uses only the calling thread.
bool AllFinite(std::span<const float> values, ThreadPool* pool = nullptr);
bool AllFinite(std::span<const double> values, ThreadPool* pool = nullptr);

}  // namespace tfjob::optimizer
