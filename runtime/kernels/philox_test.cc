#include "runtime/kernels/philox.h"

#include <gtest/gtest.h>

namespace tfjob::kernels {
namespace {

// Random123's published answers for philox4x32 with 10 rounds.
TEST(PhiloxTest, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, EveryPartOfTheStreamMatters) {
  const PhiloxStream stream{1, 2, 3, 4};
  const PhiloxCounter block = stream.Block(5);
  EXPECT_EQ(block, (PhiloxStream{1, 2, 3, 4}.Block(5)));
  EXPECT_NE(block, stream.Block(6));
  EXPECT_NE(block, stream.Block(5, 1));
  EXPECT_NE(block, (PhiloxStream{2, 2, 3, 4}.Block(5)));
  EXPECT_NE(block, (PhiloxStream{uint64_t{1} << 32 | 1, 2, 3, 4}.Block(5)));
  EXPECT_NE(block, (PhiloxStream{1, 3, 3, 4}.Block(5)));
  EXPECT_NE(block, (PhiloxStream{1, 2, 4, 4}.Block(5)));
  EXPECT_NE(block, (PhiloxStream{1, 2, 3, 5}.Block(5)));
}

}  // namespace
}  // namespace tfjob::kernels
