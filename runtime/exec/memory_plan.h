// Places buffers with known lifetimes in one arena.
#pragma once

#include <cstddef>
#include <vector>

namespace tfjob::exec {

// Steps are numbers. A buffer is in use from `first` to `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one per buffer, multiples of 64
  size_t arena_bytes = 0;
  size_t unshared_bytes = 0;  // without reuse
};

// Plans the arena. Buffers in use at the same time do not overlap. Greedy: places large buffers
// first, each in the tightest gap between those whose lifetimes overlap its own. The arena usually
// has the size of the largest sum of buffers in use at once.
MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers);

}  // namespace tfjob::exec
