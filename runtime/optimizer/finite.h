// Checks whether numbers are finite, that is, neither NaN nor infinite. Makes one pass over memory,
// divided among the pool's threads, and allocates nothing.
#pragma once

#include <span>

#include "runtime/base/thread_pool.h"

namespace tfjob::optimizer {

// `pool` may be null; everything then runs on the calling thread.
bool AllFinite(std::span<const float> values, ThreadPool* pool = nullptr);
bool AllFinite(std::span<const double> values, ThreadPool* pool = nullptr);

}  // namespace tfjob::optimizer
