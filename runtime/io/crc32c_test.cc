#include "runtime/io/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tfjob::io {
namespace {

// The examples come from RFC 3720, appendix B.4.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, MaskedKnownAnswer) {
  EXPECT_EQ(MaskCrc(Crc32c(std::string("\x1a\x11") + "CRC test, one two")), 0x5794d08au);
}

TEST(Crc32c, PartsGiveTheSameAsTheWholeAcrossTheStreamsBorders) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += static_cast<char>(i * 31 + i / 7);
  uint32_t bytewise = 0;
  for (const char& c : text) bytewise = ExtendCrc32c(bytewise, std::as_bytes(std::span(&c, 1)));
  EXPECT_EQ(Crc32c(text), bytewise);
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(ExtendCrc32c(Crc32c(bytes.first(3073)), bytes.subspan(3073)), bytewise);
}

TEST(Crc32c, ChecksumsOfPartsJoinToThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += static_cast<char>(i * 31 + i / 7);
  for (size_t cut : {0, 1, 7, 4096, 9999, 10000}) {
    const std::string second = text.substr(cut);
    EXPECT_EQ(JoinCrc32c(Crc32c(text.substr(0, cut)), Crc32c(second), second.size()), Crc32c(text))
        << cut;
  }
}

}  // namespace
}  // namespace tfjob::io
