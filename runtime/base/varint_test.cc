#include "runtime/base/varint.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

using namespace std::literals;

TEST(TakeVarint, RemovesWhatItReads) {
  const std::pair<std::string_view, uint64_t> cases[] = {
      {"\x00"sv, 0},
      {"\x7F"sv, 127},
      {"\x80\x01"sv, 128},
      {"\x80\x00"sv, 0},
      {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"sv, ~uint64_t{0}}};
  for (const auto& [bytes, expected] : cases) {
    const std::string text = std::string(bytes) + "rest";
    std::string_view left = text;
    uint64_t value = 1;
    EXPECT_TRUE(TakeVarint(left, value));
    EXPECT_EQ(value, expected);
    EXPECT_EQ(left, "rest");
  }
}

// How a varint is read depends on its length and on the number of bytes that follow it.
TEST(TakeVarint, ReadsEveryLengthBeforeAnyNumberOfBytes) {
  for (size_t length = 1; length <= 10; ++length) {
    // Each group of seven bits has another value; the tenth has one bit.
    std::string bytes;
    uint64_t expected = 0;
    for (size_t i = 0; i < length; ++i) {
      const uint64_t group = i == 9 ? 1 : 0x7F - 3 * i;
      expected |= group << (7 * i);
      bytes += static_cast<char>(group | (i + 1 < length ? 0x80 : 0));
    }
    for (size_t rest = 0; rest < 12; ++rest) {
      // Bytes that belong to no varint of `length` bytes must not change the value.
      const std::string text = bytes + std::string(rest, '\xFF');
      std::string_view left = text;
      uint64_t value = 0;
      ASSERT_TRUE(TakeVarint(left, value)) << length;
      EXPECT_EQ(value, expected) << length << " bytes, and " << rest << " after them";
      EXPECT_EQ(left.size(), rest);
      for (size_t cut = 0; cut < length; ++cut) {
        left = std::string_view(bytes).substr(0, cut);
        EXPECT_FALSE(TakeVarint(left, value)) << cut << " of " << length;
        EXPECT_EQ(left.size(), cut);
      }
    }
  }
}

TEST(TakeVarint, RemovesNothingIfThereIsNone) {
  for (const std::string_view bytes : {""sv, "\x80"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"sv,
                                       "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv}) {
    std::string_view left = bytes;
    uint64_t value = 0;
    EXPECT_FALSE(TakeVarint(left, value));
    EXPECT_EQ(left, bytes);
  }
}

}  // namespace
}  // namespace tfjob
