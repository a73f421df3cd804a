#include "runtime/exec/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tfjob::exec {
namespace {

void ExpectDisjoint(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(PlanMemory, GivesTheMemoryOfADeadBufferToTheNext) {
  // In a chain, each buffer lives for two steps, so the memory of two buffers suffices.
  const std::vector<Lifetime> chain = {{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}};
  const MemoryPlan plan = PlanMemory(chain);
  ExpectDisjoint(chain, plan);
  EXPECT_EQ(plan.arena_bytes, 2048u);
  EXPECT_EQ(plan.unshared_bytes, 4096u);
}

TEST(PlanMemory, PutsSmallBuffersIntoGaps) {
  const std::vector<Lifetime> buffers = {
      {4096, 0, 1}, {2048, 2, 5}, {2048, 2, 3}, {1024, 4, 5}, {64, 0, 5}};
  const MemoryPlan plan = PlanMemory(buffers);
  ExpectDisjoint(buffers, plan);
  EXPECT_EQ(plan.arena_bytes, 4096u + 64u);
}

TEST(PlanMemory, NeverOverlapsWhatLivesTogether) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    size_t peak = 0;
    for (int i = 0; i < 30; ++i) {
      const int first = static_cast<int>(random() % 40);
      buffers.push_back({64 * (1 + random() % 50), first, first + static_cast<int>(random() % 8)});
    }
    for (int step = 0; step < 48; ++step) {
      size_t live = 0;
      for (const Lifetime& b : buffers) live += b.first <= step && step <= b.last ? b.bytes : 0;
      peak = std::max(peak, live);
    }
    const MemoryPlan plan = PlanMemory(buffers);
    ExpectDisjoint(buffers, plan);
    EXPECT_GE(plan.arena_bytes, peak);
    EXPECT_LE(plan.arena_bytes, peak * 3 / 2);
  }
}

TEST(PlanMemory, TakesNothingForNothing) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0u);
  const MemoryPlan empty = PlanMemory({{0, 0, 0}, {0, 0, 0}});
  EXPECT_NE(empty.offsets[0], empty.offsets[1]);
}

}  // namespace
}  // namespace tfjob::exec
