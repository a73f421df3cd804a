#include "runtime/base/protobuf_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProtobufReader, ReadsFieldsInOrderAndPassesOverUnknownOnes) {
  // Field 1 is 150, field 2 is "testing", fields 3 and 4 have 8 and 4 bytes, and field 16 is -1.
  const std::string message(
      "\x08\x96\x01\x12\x07testing\x19........\x25....\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff"
      "\x01",
      38);
  ProtobufReader reader(message);
  std::vector<uint32_t> fields;
  while (reader.Next()) {
    fields.push_back(reader.field());
    if (reader.field() == 1) {
      EXPECT_EQ(reader.Int(), 150);
    }
    if (reader.field() == 2) {
      EXPECT_EQ(reader.Text(), "testing");
    }
    if (reader.field() == 16) {
      EXPECT_EQ(reader.Int32(), -1);
    }
  }
  EXPECT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_THAT(fields, ElementsAre(1, 2, 3, 4, 16));
}

TEST(ProtobufReader, RefusesMalformedMessages) {
  const struct {
    std::string message;
    std::string error;
  } cases[] = {
      {"\x08", "a number does not end"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number does not end"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number does not end"},
      {"\x12\x05"
       "abcd",
       "field 2 has 5 bytes, but only 4 follow"},
      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "but only 0 follow"},
      {"\x19"
       "1234567",
       "field 3 has 8 bytes"},
      {"\x25"
       "123",
       "field 4 has 4 bytes"},
      {"\x0b", "unknown type 3"},
      {"\x0c", "unknown type 4"},
      {std::string(1, '\0'), "0 is not the number of a field"},
      {"\xf8\xff\xff\xff\xff\x01", "is not the number of a field"},
  };
  for (const auto& c : cases) {
    ProtobufReader reader(c.message);
    while (reader.Next()) {
    }
    EXPECT_EQ(reader.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(reader.status().message()), HasSubstr(c.error));
    EXPECT_FALSE(reader.Next());
  }
}

// Returns the bytes of the only field of the message, after its number, or the error.
std::string OnlyField(std::string_view message) {
  ProtobufReader reader(message);
  if (!reader.Next()) return std::string(Message(reader.status()));
  const std::string field = StrCat(reader.field(), " ", reader.Bytes());
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.status().ok()) << reader.status();
  return field;
}

// A tag of one byte is read in another way than the same tag in two bytes.
TEST(ProtobufReader, ReadsStringsOfEveryLengthAfterShortAndLongTags) {
  const std::pair<size_t, std::string> lengths[] = {
      {0, std::string(1, '\0')}, {1, "\x01"},       {127, "\x7F"},
      {128, "\x80\x01"},         {300, "\xAC\x02"}, {1 << 14, "\x80\x80\x01"}};
  for (const auto& [length, encoded] : lengths) {
    const std::string text = encoded + std::string(length, 'x');
    for (const std::string tag : {"\x0A", "\x7A"}) {
      const std::string two_bytes = {static_cast<char>(tag[0] | 0x80), '\0'};
      const std::string expected = StrCat(tag[0] >> 3, " ", std::string(length, 'x'));
      EXPECT_EQ(OnlyField(tag + text), expected);
      EXPECT_EQ(OnlyField(two_bytes + text), expected);
      const std::string cut = text.substr(0, text.size() - 1);
      const std::string error = OnlyField(two_bytes + cut);
      EXPECT_THAT(error, HasSubstr(length == 0 ? "does not end" : "follow"));
      EXPECT_EQ(OnlyField(tag + cut), error);
    }
  }
}

TEST(ProtobufReader, RefusesOtherTypesThanAskedFor) {
  ProtobufReader number("\x08\x01");
  ASSERT_TRUE(number.Next());
  EXPECT_EQ(number.Bytes(), "");
  EXPECT_EQ(Message(number.status()), "protobuf: field 1 is not a string or a message");
  ProtobufReader text("\x0a\x01x");
  ASSERT_TRUE(text.Next());
  EXPECT_EQ(text.Int(), 0);
  EXPECT_EQ(Message(text.status()), "protobuf: field 1 is not an integer");
  ProtobufReader large("\x08\x80\x80\x80\x80\x08");
  ASSERT_TRUE(large.Next());
  EXPECT_EQ(large.Int32(), 0);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("2147483648"));
}

TEST(ProtobufReader, ReplacesBytesThatAreNotUtf8) {
  // The text contains a lone continuation byte, a truncated sequence and a surrogate. Valid text
  // around them is kept.
  const std::string message =
      "\x0a\x0e"
      "a\x80"
      "b\xe2\x82"
      "c\xed\xa0\x80"
      "\xc3\xa4"
      "d\xff"
      "e";
  ProtobufReader reader(message);
  ASSERT_TRUE(reader.Next());
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(reader.Text(), "a" + r + "b" + r + r + "c" + r + r + r +
                               "\xc3\xa4"
                               "d" +
                               r + "e");
}

}  // namespace
}  // namespace tfjob
