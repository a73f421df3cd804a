#include "runtime/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tfjob {
namespace {

std::string ErrorOf(std::string_view text) {
  return std::string(Message(ParseJson(text, "doc").status()));
}

TEST(ParseJson, ReadsADocument) {
  StatusOr<Json> document = ParseJson(R"({"a":[1,2.5,"x",null,true]})", "doc");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(PrintJson(*document), R"({"a":[1,2.5,"x",null,true]})");
}

TEST(ParseJson, NamesTheDocumentAndThePlace) {
  EXPECT_NE(ErrorOf("{\"a\":\n 1,}").find("doc is not valid JSON: parse error at line 2"),
            std::string::npos)
      << ErrorOf("{\"a\":\n 1,}");
}

TEST(ParseJson, RefusesWhatFollowsANul) {
  using std::string_literals::operator""s;
  EXPECT_EQ(ErrorOf("5\0{}"s), "doc is not valid JSON: a NUL byte at offset 1");
  EXPECT_EQ(ErrorOf("[]\0"s), "doc is not valid JSON: a NUL byte at offset 2");
}

TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_NE(ErrorOf(R"({"a":1,"a":2})").find("duplicate key \"a\""), std::string::npos);
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_NE(ErrorOf(std::string(300, '[') + std::string(300, ']')).find("nested deeper"),
            std::string::npos);
}

TEST(ParseJson, RefusesInvalidUtf8) {
  EXPECT_FALSE(ParseJson("\"\xff\"", "doc").ok());
}

TEST(IsUtf8, KnowsWellFormedText) {
  for (const char* good : {"", "abc", "\u00e9", "\u20ac", "\U0001f600", "\U0010ffff"})
    EXPECT_TRUE(IsUtf8(good)) << good;
  for (const char* bad :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x28\xa1", "\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(JsonField, ReadsTypedValues) {
  Json document = *ParseJson(R"({"s":"x","i":3,"d":1.5,"b":true,"n":null,"l":[{"k":7}]})", "doc");
  JsonField root(document);
  EXPECT_EQ(*root["s"].String(), "x");
  EXPECT_EQ(*root["i"].Int(), 3);
  EXPECT_EQ(*root["i"].Double(), 3.0);
  EXPECT_EQ(*root["b"].Bool(), true);
  EXPECT_FALSE(root["n"].present());
  EXPECT_EQ(*root["n"].IntOr(9), 9);
  EXPECT_EQ(*root["l"][size_t{0}]["k"].Int(), 7);
  EXPECT_EQ(root["l"][size_t{0}]["k"].path(), "l[0].k");
}

TEST(JsonField, MismatchNamesPathExpectationAndValue) {
  Json document = *ParseJson(R"({"task":{"index":"x","big":5000000000}})", "doc");
  JsonField root(document);
  EXPECT_EQ(Message(root["task"]["index"].Int().status()),
            "task.index: expected an integer, got \"x\"");
  EXPECT_EQ(Message(root["task"]["none"].String().status()),
            "task.none: expected a string, but it is missing");
  EXPECT_EQ(Message(root["task"]["big"].Int32().status()),
            "task.big: expected an integer of 32 bits, got 5000000000");
}

}  // namespace
}  // namespace tfjob
