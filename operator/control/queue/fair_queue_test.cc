#include "operator/control/queue/fair_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace tfjob::control {
namespace {

using enum Urgency;
using Keys = std::vector<std::string>;

Keys Drain(FairQueue& queue) {
  Keys keys;
  while (std::optional<std::string> key = queue.Pop()) keys.push_back(*std::move(key));
  EXPECT_TRUE(queue.empty());
  return keys;
}

TEST(FairQueue, NamespacesTakeTurns) {
  FairQueue queue;
  for (const char* key : {"a/1", "a/2", "a/3", "b/1", "a/4", "c/1", "c/2"}) queue.Push(key, kNews);
  EXPECT_EQ(queue.size(), 7u);
  EXPECT_EQ(Drain(queue), (Keys{"a/1", "b/1", "c/1", "a/2", "c/2", "a/3", "a/4"}));
}

TEST(FairQueue, ANamespaceThatComesBackWaitsForItsTurn) {
  FairQueue queue;
  queue.Push("a/1", kNews);
  queue.Push("b/1", kNews);
  queue.Push("b/2", kNews);
  EXPECT_EQ(queue.Pop(), "a/1");
  queue.Push("a/1", kNews);
  EXPECT_EQ(Drain(queue), (Keys{"b/1", "a/1", "b/2"}));
}

TEST(FairQueue, AThousandJobsOfOneNamespaceDelayAnotherByOneKey) {
  FairQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Push("crowd/" + std::to_string(i), kNews);
  queue.Push("guest/1", kNews);
  EXPECT_EQ(queue.Pop(), "crowd/0");
  EXPECT_EQ(queue.Pop(), "guest/1");
  EXPECT_EQ(queue.Pop(), "crowd/1");
}

TEST(FairQueue, NewsComeBeforeTheFirstList) {
  FairQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Push("a/" + std::to_string(i), kListed);
  queue.Push("a/new", kNews);
  EXPECT_EQ(queue.Pop(), "a/new");
  EXPECT_EQ(queue.Pop(), "a/0");
}

TEST(FairQueue, NewsRaiseTheUrgencyOfAQueuedKeyAndAListNeverLowersIt) {
  FairQueue queue;
  for (const char* key : {"a/1", "b/1", "b/2", "b/3"}) queue.Push(key, kListed);
  queue.Push("b/2", kNews);
  queue.Push("b/2", kListed);
  queue.Push("a/1", kNews);  // the only key of its namespace
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(Drain(queue), (Keys{"b/2", "a/1", "b/1", "b/3"}));
}

TEST(FairQueue, EndlessNewsDoNotStarveTheList) {
  FairQueue queue;
  queue.Push("a/1", kListed);
  queue.Push("a/2", kListed);
  Keys taken;
  for (int i = 0; i < 10; ++i) {
    queue.Push("b/1", kNews);
    taken.push_back(*queue.Pop());
  }
  EXPECT_EQ(taken, (Keys{"b/1", "b/1", "b/1", "b/1", "a/1", "b/1", "b/1", "b/1", "b/1", "a/2"}));
}

TEST(FairQueue, GivesEachKeyOnce) {
  FairQueue queue;
  queue.Push("a/1", kNews);
  queue.Push("a/1", kNews);
  EXPECT_EQ(Drain(queue), Keys{"a/1"});
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

}  // namespace
}  // namespace tfjob::control
