#include "runtime/base/json_split.h"

#include <gtest/gtest.h>

#include <string>

namespace tfjob {
namespace {

std::string Repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// Returns the members as "key=value", one per line; "error" if the text is rejected.
std::string Members(std::string_view text) {
  const auto members = SplitJsonObject(text);
  if (!members.ok()) return "error";
  std::string all;
  for (const JsonMember& member : *members) all += StrCat(member.key, "=", member.value, "\n");
  return all;
}

TEST(JsonSplit, FindsTheMembersOfAnObject) {
  EXPECT_EQ(Members(R"( { "a" : [1, {"x":"}"}] ,"b":"q\"]\\", "c":null,"d":-1.5e3,"":{} } )"),
            "a=[1, {\"x\":\"}\"}]\nb=\"q\\\"]\\\\\"\nc=null\nd=-1.5e3\n={}\n");
  EXPECT_EQ(Members("{}"), "");
  EXPECT_EQ(FindJsonMember(R"({"a":1,"b":{"c":2},"b":3})", "b"), R"({"c":2})");
  EXPECT_EQ(FindJsonMember(R"({"a":1})", "b"), "");
  EXPECT_EQ(FindJsonMember("[1]", "b"), "");
}

TEST(JsonSplit, FindsTheElementsOfAList) {
  const auto elements = SplitJsonArray("[ {\"a\":[]} ,\"]\",\n3 ]");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_EQ(*elements, (std::vector<std::string_view>{"{\"a\":[]}", "\"]\"", "3"}));
  EXPECT_TRUE(SplitJsonArray("[]")->empty());
}

// The parts are not parsed, so a part that no parser accepts does not hide the other parts.
TEST(JsonSplit, PassesOverPartsThatCannotBeParsed) {
  const std::string deep = Repeated("[", 9000) + Repeated("]", 9000);
  EXPECT_EQ(Members("{\"a\":\"\xff\xfe\",\"b\":1e999,\"c\":" + deep + ",\"d\":1}"),
            "a=\"\xff\xfe\"\nb=1e999\nc=" + deep + "\nd=1\n");
}

TEST(JsonSplit, RefusesWhatIsNotAWholeContainer) {
  for (const char* text :
       {"", "7", "[]", "{", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}", "{\"a\":1",
        "{\"a\":[1}", "{\"a\":{]}}", "{\"a\":\"x}", "{\"a\":1 2}", "{\"a\":\"\\\"}"}) {
    EXPECT_EQ(Members(text), "error") << text;
  }
  for (const char* text : {"", "{}", "[", "[1,]", "[,]", "[1 2]", "[1]]", "[{]"}) {
    EXPECT_FALSE(SplitJsonArray(text).ok()) << text;
  }
  EXPECT_FALSE(SplitJsonArray("[" + Repeated("[", 20000) + Repeated("]", 20000) + "]").ok());
  EXPECT_FALSE(SplitJsonArray(Repeated("[", 1 << 20)).ok());
}

TEST(JsonSplit, MeasuresDepthAndValues) {
  EXPECT_EQ(MeasureJson("7").depth, 0u);
  EXPECT_EQ(MeasureJson(R"({"a":{"b":"[[[["}})").depth, 2u);
  EXPECT_EQ(MeasureJson(Repeated("[", 300) + Repeated("]", 300)).depth, 300u);
  const std::string many = "[" + Repeated("{},", 999) + "{}]";
  EXPECT_GE(MeasureJson(many).values, 1001u);
  EXPECT_LE(MeasureJson(many).values, 2 * 1001u);
  EXPECT_LE(MeasureJson("\"" + Repeated(",{}", 1000) + "\"").values, 1u);
  EXPECT_EQ(MeasureJson("]]]]").depth, 0u);
}

}  // namespace
}  // namespace tfjob
