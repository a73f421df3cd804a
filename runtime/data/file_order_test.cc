// Tests the order in which each worker reads whole files.
#include "runtime/data/file_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/data/part.h"

namespace tfjob::data {
namespace {

// Returns the number of the first example of each file; the last element is the total.
std::vector<int64_t> StartsOf(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> starts = {0};
  for (const int64_t size : sizes) starts.push_back(starts.back() + size);
  return starts;
}

FileOrder Make(const std::vector<int64_t>& sizes, const FileOrderOptions& options) {
  const std::vector<int64_t> starts = StartsOf(sizes);
  return FileOrder(std::span(starts).first(sizes.size()), starts.back(), options);
}

std::vector<int64_t> EpochOf(FileOrder& order, int64_t epoch, int64_t size) {
  std::vector<int64_t> examples;
  order.Begin(epoch);
  for (int64_t place = 0; place < size; ++place) examples.push_back(order.At(place));
  return examples;
}

size_t FileOf(const std::vector<int64_t>& sizes, int64_t example) {
  const std::vector<int64_t> starts = StartsOf(sizes);
  return static_cast<size_t>(std::ranges::upper_bound(starts, example) - starts.begin()) - 1;
}

TEST(FileOrder, GroupsHaveSimilarSizes) {
  const FileOrder order = Make({5, 0, 90, 40, 7, 30, 8}, {.groups = 3, .batch = 6});
  EXPECT_THAT(order.files(0), testing::ElementsAre(2));
  EXPECT_THAT(order.files(1), testing::ElementsAre(0, 1, 3));
  EXPECT_THAT(order.files(2), testing::ElementsAre(4, 5, 6));
  EXPECT_EQ(order.batches_by_file(), 22) << "two rows per batch of the smallest group, of 45";
}

// Every order contains each example once, and each part of the first batches comes from the files
// of one group.
TEST(FileOrder, EveryExampleOccursOnceAndPartsComeFromOneGroup) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> sizes(1 + random() % 12);
    for (int64_t& size : sizes) size = static_cast<int64_t>(random() % 40);
    sizes[random() % sizes.size()] += 1;
    const int64_t size = StartsOf(sizes).back();
    FileOrderOptions options{.seed = random(), .window = 7};
    options.kind = static_cast<Order::Kind>(round % 4);
    options.groups = 1 + static_cast<int64_t>(random() % 5);
    options.batch = options.groups + static_cast<int64_t>(random() % 9);
    FileOrder order = Make(sizes, options);
    const std::vector<int64_t> epoch = EpochOf(order, round, size);
    const std::set<int64_t> once(epoch.begin(), epoch.end());
    ASSERT_EQ(static_cast<int64_t>(once.size()), size);
    ASSERT_EQ(*once.begin(), 0);
    ASSERT_EQ(*once.rbegin(), size - 1);
    for (int64_t batch = 0; batch < order.batches_by_file(); ++batch) {
      for (int64_t g = 0; g < options.groups; ++g) {
        const Part part = PartOf(options.batch, g, options.groups);
        for (int64_t i = 0; i < part.size; ++i) {
          const int64_t example =
              epoch[static_cast<size_t>(batch * options.batch + part.begin + i)];
          ASSERT_TRUE(
              std::ranges::count(order.files(static_cast<size_t>(g)), FileOf(sizes, example)) == 1);
        }
      }
    }
  }
}

TEST(FileOrder, DependsOnTheSeedAndTheEpoch) {
  FileOrder order = Make({30, 30}, {.seed = 1, .groups = 2, .batch = 4});
  FileOrder other = Make({30, 30}, {.seed = 2, .groups = 2, .batch = 4});
  const std::vector<int64_t> first = EpochOf(order, 0, 60);
  EXPECT_NE(first, EpochOf(order, 1, 60));
  EXPECT_NE(first, EpochOf(other, 0, 60));
  EXPECT_EQ(first, EpochOf(order, 0, 60));
}

// Checkpoints of earlier versions rely on these orders.
TEST(FileOrder, NeverChanges) {
  FileOrder order = Make({4, 6, 3}, {.seed = 5, .groups = 2, .batch = 4});
  EXPECT_THAT(EpochOf(order, 1, 13),
              testing::ElementsAre(5, 6, 0, 1, 4, 9, 3, 2, 8, 7, 11, 10, 12));
  FileOrder files = Make({4, 6, 3}, {.kind = Order::Kind::kFiles, .groups = 2, .batch = 4});
  EXPECT_THAT(EpochOf(files, 0, 13),
              testing::ElementsAre(4, 5, 0, 1, 6, 7, 2, 3, 8, 9, 10, 11, 12));
}

}  // namespace
}  // namespace tfjob::data
