#include "runtime/io/tensor_slice.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tfjob::io {
namespace {

std::string Key(std::string_view name, std::vector<int64_t> starts, std::vector<int64_t> lengths) {
  return SliceKey(name, starts, lengths);
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// The keys of a float32[4,70000] that TensorFlow 2.21 partitioned into four along the last axis,
// and of a float32[200,3] that it partitioned into three along the first axis.
TEST(SliceKey, IsTheKeyThatTensorFlowWrites) {
  EXPECT_EQ(Hex(Key("b", {0, 0}, {4, 17500})), "006200010102808480e0445c");
  EXPECT_EQ(Hex(Key("b", {0, 52500}, {4, 17500})), "0062000101028084e0cd14e0445c");
  EXPECT_EQ(Hex(Key("dense/kernel", {134, 0}, {66, 3})),
            "0064656e73652f6b65726e656c00010102c086c0428083");
}

TEST(SliceKey, EscapesNamesAndWritesNumbersOfAnySize) {
  EXPECT_EQ(Hex(Key(std::string_view("a\0\xFF", 3), {}, {})), "006100ffff00000100");
  EXPECT_EQ(Hex(Key("", {0}, {-1})), "0000010101807f") << "an open length";
  EXPECT_EQ(Hex(Key("", {63}, {64})), "0000010101bfc040");
  EXPECT_EQ(Hex(Key("", {-64}, {-65})), "0000010101403fbf");
  EXPECT_EQ(Hex(Key("", {int64_t{1} << 55}, {int64_t{1} << 62})),
            "0000010101ff8080000000000000ffc04000000000000000");
  EXPECT_EQ(Hex(Key("", {INT64_MAX}, {INT64_MIN})),
            "0000010101ffc07fffffffffffffff003f8000000000000000");
  const std::vector<int64_t> many(256, 0);
  EXPECT_EQ(Hex(SliceKey("", many, many)).substr(0, 12), "000001020100");
}

std::string ErrorOf(const Shape& shape, const std::vector<TensorSlice>& slices) {
  std::vector<const TensorSlice*> pointers;
  for (const TensorSlice& slice : slices) pointers.push_back(&slice);
  const Status status = CheckPartition(shape, pointers);
  EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  return std::string(Message(status));
}

TEST(CheckPartition, AcceptsEveryPartition) {
  EXPECT_EQ(ErrorOf({7, 3}, {{{0, 0}, {4, 3}}, {{4, 0}, {3, 3}}}), "");
  EXPECT_EQ(ErrorOf({7, 3}, {{{0, 1}, {7, 2}}, {{0, 0}, {7, 1}}}), "");
  // Five boxes that no cut through the whole tensor separates.
  EXPECT_EQ(ErrorOf({3, 3}, {{{0, 0}, {1, 2}},
                             {{0, 2}, {2, 1}},
                             {{2, 1}, {1, 2}},
                             {{1, 0}, {2, 1}},
                             {{1, 1}, {1, 1}}}),
            "");
  EXPECT_EQ(ErrorOf({}, {{{}, {}}}), "");
  EXPECT_EQ(ErrorOf({0, 3}, {{{0, 0}, {0, 3}}}), "");
}

TEST(CheckPartition, RefusesSlicesThatAreNoPartition) {
  EXPECT_EQ(ErrorOf({7, 3}, {{{0, 0}, {4, 3}}, {{3, 0}, {4, 3}}}),
            "slice [3:7, 0:3] overlaps slice [0:4, 0:3]");
  EXPECT_EQ(ErrorOf({7, 3}, {{{0, 0}, {4, 3}}, {{5, 0}, {2, 3}}}),
            "its 2 slices contain only 18 of the 21 elements of the shape [7,3]");
  EXPECT_EQ(ErrorOf({7, 3}, {{{0, 0}, {7, 3}}, {{2, 1}, {1, 1}}}),
            "slice [2:3, 1:2] overlaps slice [0:7, 0:3]");
  const std::vector<TensorSlice> outside = {
      {{0, 0}, {8, 3}},         {{-1, 0}, {7, 3}},        {{1, 0}, {7, 3}}, {{0, 0}, {-1, 3}},
      {{INT64_MAX, 0}, {1, 3}}, {{1, 0}, {INT64_MAX, 3}}, {{0}, {7}}};
  for (const TensorSlice& slice : outside) {
    EXPECT_EQ(ErrorOf({7, 3}, {slice}),
              StrCat("slice ", slice.ToString(), " is not within the shape [7,3]"));
  }
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(ErrorOf({large, large}, {{{0, 0}, {large, large}}}),
            StrCat("its shape [", large, ",", large, "] is too large"));
}

TEST(SlicePositions, AreTheInverseOfEachOther) {
  const Shape shape = {3, 4, 5};
  for (const TensorSlice& slice : std::vector<TensorSlice>{{{0, 0, 0}, {3, 4, 5}},
                                                           {{1, 0, 0}, {2, 4, 5}},
                                                           {{0, 1, 0}, {3, 2, 5}},
                                                           {{0, 0, 3}, {3, 4, 2}},
                                                           {{1, 2, 3}, {1, 2, 1}},
                                                           {{2, 0, 4}, {1, 4, 1}}}) {
    const SlicePositions positions(shape, slice);
    SCOPED_TRACE(slice.ToString());
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t at[] = {i / 20, i / 5 % 4, i % 5};
      bool within = true;
      for (size_t d = 0; d < 3; ++d)
        within = within && at[d] >= slice.start[d] && at[d] < slice.start[d] + slice.length[d];
      const std::optional<int64_t> position = positions.InSlice(i);
      ASSERT_EQ(position.has_value(), within) << i;
      if (!position) continue;
      EXPECT_EQ(positions.InTensor(*position), i);
      seen.push_back(*position);
    }
    std::vector<int64_t> wanted(static_cast<size_t>(positions.size()));
    std::iota(wanted.begin(), wanted.end(), 0);
    EXPECT_EQ(seen, wanted) << "in row-major order";
    for (int64_t i = 1; i < positions.size(); ++i) {
      if (i % positions.block() == 0) continue;
      EXPECT_EQ(positions.InTensor(i), positions.InTensor(i - 1) + 1) << i;
    }
  }
}

TEST(SlicePositions, BlocksAreAsLargeAsPossible) {
  const Shape shape = {3, 4, 5};
  EXPECT_EQ(SlicePositions(shape, WholeSlice(shape)).block(), 60);
  EXPECT_EQ(SlicePositions(shape, {{1, 0, 0}, {2, 4, 5}}).block(), 40);
  EXPECT_EQ(SlicePositions(shape, {{0, 1, 0}, {3, 2, 5}}).block(), 10);
  EXPECT_EQ(SlicePositions(shape, {{0, 0, 3}, {3, 4, 2}}).block(), 2);
  EXPECT_EQ(SlicePositions({}, WholeSlice({})).block(), 1);
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(SlicePositions({0, large, large}, WholeSlice({0, large, large})).size(), 0);
}

}  // namespace
}  // namespace tfjob::io
