#include "runtime/base/fnv1a.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

// The values are from the test vectors of the page that the header names.
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
