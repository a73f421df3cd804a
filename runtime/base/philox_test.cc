#include "runtime/base/philox.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/base/fnv1a.h"

namespace tfjob {
namespace {

// The known answers come from the library of the paper's authors (Random123, kat_vectors,
// philox4x32 10).
TEST(Philox, GivesThePapersKnownAnswers) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsOfDifferentNamesAndSeedsDiffer) {
  EXPECT_NE(PhiloxKey(1, "dense/kernel"), PhiloxKey(1, "dense_1/kernel"));
  EXPECT_NE(PhiloxKey(1, "dense/kernel"), PhiloxKey(2, "dense/kernel"));
  EXPECT_EQ(PhiloxKey(1, "dense/kernel"), PhiloxKey(1, "dense/kernel"));
}

TEST(Philox, UniformAndBelowCoverTheirRangesEvenly) {
  PhiloxStream random(PhiloxKey(3, "test"));
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.Below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

// The values come from the test vectors on the page that the header names.
TEST(Fnv1a, ReturnsThePublishedHashes) {
  EXPECT_EQ(Fnv1a().hash(), 0xCBF29CE484222325u);
  EXPECT_EQ(Fnv1a().Add("a").hash(), 0xAF63DC4C8601EC8Cu);
  EXPECT_EQ(Fnv1a().Add("foobar").hash(), 0x85944171F73967E8u);
  EXPECT_EQ(Fnv1a().Add("foo").Add("").Add("bar").hash(), 0x85944171F73967E8u);
}

TEST(Fnv1a, DistinguishesWordsByTheirOrder) {
  EXPECT_NE(Fnv1a().AddWord(1).AddWord(2).hash(), Fnv1a().AddWord(2).AddWord(1).hash());
  EXPECT_NE(Fnv1a().AddWord(0).hash(), Fnv1a().hash());
}

}  // namespace
}  // namespace tfjob
