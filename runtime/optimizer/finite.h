// Checks whether numbers are finite, that is, neither NaN nor infinite. Reads the memory once,
// split among the pool's threads, and allocates nothing.
#pragma once

#include <span>

#include "runtime/base/thread_pool.h"

namespace tfjob::optimizer {

// If `pool` is null, everything runs on the calling thread.
bool AllFinite(std::span<const float> values, ThreadPool* pool = nullptr);
bool AllFinite(std::span<const double> values, ThreadPool* pool = nullptr);

}  // namespace tfjob::optimizer
