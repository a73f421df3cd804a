// Places buffers with known lifetimes in one arena.
#pragma once

#include <cstddef>
#include <vector>

namespace tfjob::exec {

// Steps are numbers; a buffer is in use from `first` to `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one a buffer, multiples of 64
  size_t arena_bytes = 0;
  size_t unshared_bytes = 0;  // without reuse
};

// Buffers in use at the same time do not overlap. Greedy: large ones first, each in the tightest
// gap among those whose lifetimes touch its own; usually the largest sum of buffers in use at once.
MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers);

}  // namespace tfjob::exec
