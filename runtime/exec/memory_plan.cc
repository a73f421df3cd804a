#include "runtime/exec/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tfjob::exec {
namespace {

size_t Rounded(size_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

bool Overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Range {
  size_t begin;
  size_t end;
};

// Returns the start of the smallest gap of at least `bytes` bytes before or between the ranges. If
// there is no such gap, returns the largest end of a range. The ranges must be sorted by their
// start.
size_t TightestGap(const std::vector<Range>& taken, size_t bytes) {
  size_t end = 0;
  size_t best = 0;
  size_t best_gap = std::numeric_limits<size_t>::max();
  for (const Range& range : taken) {
    if (range.begin >= end + bytes && range.begin - end < best_gap) {
      best = end;
      best_gap = range.begin - end;
    }
    end = std::max(end, range.end);
  }
  return best_gap == std::numeric_limits<size_t>::max() ? end : best;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<Lifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<Range> taken;
    for (size_t other : placed) {
      if (!Overlap(buffers[i], buffers[other])) continue;
      taken.push_back({plan.offsets[other], plan.offsets[other] + Rounded(buffers[other].bytes)});
    }
    std::ranges::sort(taken, {}, &Range::begin);
    const size_t bytes = Rounded(buffers[i].bytes);
    plan.offsets[i] = TightestGap(taken, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[i] + bytes);
    plan.unshared_bytes += bytes;
    placed.push_back(i);
  }
  return plan;
}

}  // namespace tfjob::exec
