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
