// Places buffers with known lifetimes in one arena.
#pragma once

#include <cstddef>
#include <vector>

namespace tfjob::exec {

// Buffers start at multiples of this number of bytes.
inline constexpr size_t kAlignment = 64;
inline size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The size of a buffer, and the steps during which it is in use: from `first` to `last`, inclusive.
struct Lifetime {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one per buffer, multiples of kAlignment
  size_t arena_bytes = 0;
  size_t unshared_bytes = 0;  // the size of the arena if no memory were reused
};

// Plans the arena so that buffers in use at the same time do not overlap. The algorithm is greedy:
// it places the largest buffers first, each in the smallest sufficient gap between the buffers
// whose lifetimes overlap with its own. The arena is usually no larger than the total size of the
// buffers in use at the busiest step.
MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers);

}  // namespace tfjob::exec
