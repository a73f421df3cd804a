#include "operator/kube/rest/token_bucket.h"

#include <gtest/gtest.h>

namespace tfjob::kube {
namespace {

TEST(TokenBucket, GivesTheBurstAtOnceAndThenTheRate) {
  TokenBucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*bucket.Take(0s, 1min), 0s);
  EXPECT_EQ(*bucket.Take(0s, 1min), 100ms);
  EXPECT_EQ(*bucket.Take(0s, 1min), 200ms);
  EXPECT_EQ(*bucket.Take(200ms, 1min), 100ms);
}

TEST(TokenBucket, SavesNoMoreThanTheBurst) {
  TokenBucket bucket(10, 2);
  EXPECT_EQ(*bucket.Take(1h, 1min), 0s);
  EXPECT_EQ(*bucket.Take(1h, 1min), 0s);
  EXPECT_EQ(*bucket.Take(1h, 1min), 100ms);
}

TEST(TokenBucket, TakesNothingFromThoseWhoDoNotWait) {
  TokenBucket bucket(10, 1);
  EXPECT_EQ(*bucket.Take(0s, 0s), 0s);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(bucket.Take(0s, 50ms).has_value());
  EXPECT_EQ(*bucket.Take(0s, 100ms), 100ms);
}

TEST(TokenBucket, RateZeroIsNoLimit) {
  TokenBucket bucket(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(*bucket.Take(0s, 0s), 0s);
}

}  // namespace
}  // namespace tfjob::kube
