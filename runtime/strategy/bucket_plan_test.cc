#include "runtime/strategy/bucket_plan.h"

#include <gtest/gtest.h>

#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kMi = 1 << 20;

std::vector<BucketItem> Floats(const std::vector<int64_t>& bytes) {
  std::vector<BucketItem> items;
  for (const int64_t size : bytes)
    items.push_back({.variable = static_cast<int>(items.size()), .elements = size / 4});
  return items;
}

std::vector<size_t> Counts(const BucketPlan& plan) {
  std::vector<size_t> counts;
  for (const Bucket& bucket : plan.buckets) counts.push_back(bucket.count);
  return counts;
}

TEST(BucketPlan, BeginsAndEndsWithSmallBuckets) {
  const BucketPlan plan =
      PlanBuckets(Floats({kMi / 2, kMi / 2, 2 * kMi, 2 * kMi, 2 * kMi, kMi, kMi / 2}), 4 * kMi);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{2, 2, 2, 1}));
}

TEST(BucketPlan, GivesALargeItemItsOwnBucket) {
  const BucketPlan plan = PlanBuckets(Floats({64, 30 * kMi, 64, 30 * kMi}), 0);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{1, 1, 1, 1}));
}

TEST(BucketPlan, HoldsNoMoreThanTheLimit) {
  const BucketPlan plan = PlanBuckets(Floats(std::vector<int64_t>(100, kMi)), 100 * kMi);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{1, 25, 25, 25, 23, 1}));
}

TEST(BucketPlan, AlignsItemsAndCoversThemWithoutGaps) {
  const BucketPlan plan = PlanBuckets(Floats({4, 100, 64, kMi}), 0);
  size_t end = 0;
  for (const Bucket& bucket : plan.buckets) {
    EXPECT_EQ(bucket.begin, end);
    end += bucket.bytes;
    EXPECT_EQ(plan.items[bucket.first].begin, bucket.begin);
  }
  EXPECT_EQ(end, plan.bytes);
  EXPECT_EQ(plan.items[1].begin, 64);
  EXPECT_EQ(plan.items[2].begin, 192);
  EXPECT_EQ(Describe(plan), "3 in 256 bytes of float32, 1 in 1048576 bytes of float32");
}

TEST(BucketPlan, SeparatesTypes) {
  std::vector<BucketItem> items = Floats({64, 64, 64});
  items[1].dtype = DType::kFloat64;
  const BucketPlan plan = PlanBuckets(items, 0);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(plan.buckets[1].bytes, 128);
  EXPECT_EQ(plan.buckets[1].dtype, DType::kFloat64);
}

TEST(BucketPlan, OfNothingIsEmpty) {
  EXPECT_TRUE(PlanBuckets({}, 0).buckets.empty());
}

TEST(BucketPlan, ListsTheTablesWhoseGradientsTravelByRows) {
  const optimizer::Optimizer optimizer = Optimizers()[0];
  const BucketPlan plan = *PlanStep(Pooled(optimizer, /*rows=*/true), 0);
  const TableItem table{.variable = 0,
                        .name = "embedding/embeddings",
                        .dtype = DType::kFloat32,
                        .rows = kRows,
                        .cols = 5,
                        .batch_rows = kBatch * kLength};
  EXPECT_EQ(plan.tables, std::vector<TableItem>{table});
  EXPECT_EQ(Describe(plan), "2 in 128 bytes of float32, embedding/embeddings by rows");
  const BucketPlan dense = *PlanStep(Pooled(optimizer, /*rows=*/false), 0);
  EXPECT_TRUE(dense.tables.empty());
  EXPECT_EQ(Describe(dense), "3 in 960 bytes of float32");
}

}  // namespace
}  // namespace tfjob::strategy
