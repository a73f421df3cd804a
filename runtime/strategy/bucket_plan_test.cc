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
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{2, 2, 1, 1, 1}));
}

TEST(BucketPlan, GivesALargeItemItsOwnBucket) {
  const BucketPlan plan = PlanBuckets(Floats({64, 30 * kMi, 64, 30 * kMi}), 0);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{1, 1, 1, 1}));
}

TEST(BucketPlan, HoldsNoMoreThanTheLimit) {
  const BucketPlan plan = PlanBuckets(Floats(std::vector<int64_t>(100, kMi)), 100 * kMi);
  EXPECT_EQ(Counts(plan), (std::vector<size_t>{1, 25, 25, 25, 21, 2, 1}));
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

TEST(BucketPlan, SeparatesCompressedItemsAndCountsTheBytesThatAreSent) {
  std::vector<BucketItem> items = Floats({128, 4 * kMi, 4 * kMi, 128});
  for (size_t i = 1; i < items.size(); ++i) items[i].compressed = true;
  const BucketPlan plan = PlanBuckets(items, 4 * kMi);
  EXPECT_EQ(Describe(plan),
            "1 in 128 bytes of float32, 2 in 4194304 bytes of bfloat16, 1 in 64 bytes of bfloat16");
}

TEST(BucketPlan, OfNothingIsEmpty) {
  EXPECT_TRUE(PlanBuckets({}, 0).buckets.empty());
}

// An item that is announced before an exchange comes before it only if no earlier item, and no
// other item of its bucket, is announced after it.
TEST(BucketPlan, PutsExchangesBeforeTheItemsThatFollowThem) {
  BucketPlan plan = PlanBuckets(Floats({kMi, kMi, 8 * kMi, kMi}), kMi);
  const BucketPlan without = plan;
  std::vector<exec::PlannedExchange> exchanges;
  for (const int position : {1, 11, 12, 50})
    exchanges.push_back({.elements = 10, .position = position});
  AddExchanges(exchanges, {10, 12, 30, 20}, plan);
  std::vector<int64_t> order;  // the number of an exchange, or -1
  for (const Bucket& bucket : plan.buckets) order.push_back(bucket.exchange);
  EXPECT_EQ(order, (std::vector<int64_t>{0, -1, 1, 2, -1, -1, -1, 3}));
  EXPECT_EQ(plan.items, without.items);
  EXPECT_EQ(plan.buckets[0].begin, without.bytes);
  EXPECT_EQ(plan.buckets[0].bytes, 40);
  EXPECT_EQ(plan.buckets[2].begin, without.bytes + 64);
  EXPECT_EQ(plan.bytes, without.bytes + 4 * 64);
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
  EXPECT_EQ(
      Describe(*PlanStep(Pooled(optimizer, /*rows=*/true), 0, config::Compression::kBFloat16)),
      "2 in 128 bytes of bfloat16, embedding/embeddings by rows");
  EXPECT_TRUE(dense.tables.empty());
  EXPECT_EQ(Describe(dense), "3 in 960 bytes of float32");
}

}  // namespace
}  // namespace tfjob::strategy
