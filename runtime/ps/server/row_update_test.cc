#include "runtime/ps/server/row_update.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace tfjob::ps {
namespace {

using Rows = std::map<int64_t, std::vector<float>>;

constexpr ShardRows kShard{.first = 10, .count = 5, .bytes = 2 * sizeof(float)};

std::string Update(const Rows& rows) {
  std::string bytes;
  for (const auto& [index, row] : rows)
    bytes.append(reinterpret_cast<const char*>(&index), sizeof(index));
  for (const auto& [index, row] : rows)
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  return bytes;
}

RowUpdate<const std::byte> View(const std::string& bytes) {
  return RowUpdate<const std::byte>::Of(
      std::as_bytes(std::span(bytes)),
      static_cast<int64_t>(bytes.size() / (sizeof(int64_t) + 2 * sizeof(float))));
}

Rows Sum(const Rows& a, const Rows& b) {
  const std::string first = Update(a), second = Update(b);
  const int64_t count = RowsOfSum(View(first).indices, View(second).indices);
  std::vector<double> sum(kShard.UpdateBytes(count) / sizeof(double));  // doubles, for alignment
  const auto bytes = std::as_writable_bytes(std::span(sum));
  AddRows(kShard, View(first), View(second), bytes);
  const auto view = RowUpdate<std::byte>::Of(bytes, count);
  Rows rows;
  for (size_t i = 0; i < view.indices.size(); ++i) {
    std::vector<float>& row = rows[view.indices[i]];
    row.resize(2);
    std::memcpy(row.data(), view.values.data() + i * 8, 8);
  }
  EXPECT_EQ(rows.size(), static_cast<size_t>(count)) << "distinct indices";
  return rows;
}

TEST(RowUpdate, TheSumHasTheRowsOfBoth) {
  EXPECT_EQ(Sum({{10, {1, 2}}, {12, {3, 4}}, {14, {5, 6}}}, {{11, {10, 20}}, {12, {30, 40}}}),
            (Rows{{10, {1, 2}}, {11, {10, 20}}, {12, {33, 44}}, {14, {5, 6}}}));
  EXPECT_EQ(Sum({}, {{13, {1, 2}}}), (Rows{{13, {1, 2}}}));
  EXPECT_EQ(Sum({{13, {1, 2}}}, {}), (Rows{{13, {1, 2}}}));
  EXPECT_EQ(Sum({}, {}), Rows());
}

TEST(RowUpdate, AddsTheSecondToTheFirst) {
  // The result depends on the order of the terms: in float, 1e8 + 1 - 1e8 is 0, not 1.
  EXPECT_EQ(Sum(Sum({{10, {1e8f, 0}}}, {{10, {1, 0}}}), {{10, {-1e8f, 0}}}), (Rows{{10, {0, 0}}}));
}

TEST(RowUpdate, AcceptsAscendingRowsOfTheShardOnly) {
  const auto check = [](std::vector<int64_t> indices) { return CheckRows(kShard, indices).ok(); };
  EXPECT_TRUE(check({}));
  EXPECT_TRUE(check({10, 11, 14}));
  EXPECT_FALSE(check({9}));
  EXPECT_FALSE(check({15}));
  EXPECT_FALSE(check({11, 11}));
  EXPECT_FALSE(check({12, 11}));
  EXPECT_FALSE(check({-1}));
  EXPECT_FALSE(check({INT64_MAX}));
  EXPECT_FALSE(check({INT64_MIN, 10}));
  EXPECT_EQ(Message(CheckRows(kShard, std::vector<int64_t>{12, 12})),
            "row 12: expected ascending rows from 10 to 14");
}

}  // namespace
}  // namespace tfjob::ps
