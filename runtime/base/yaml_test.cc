#include "runtime/base/yaml.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob {
namespace {

std::string OneAsJson(std::string_view text) {
  StatusOr<std::vector<Json>> documents = ParseYaml(text, "doc");
  if (!documents.ok()) return std::string(Message(documents.status()));
  return documents->size() == 1 ? PrintJson(documents->front()) : "not one document";
}

TEST(ParseYaml, ReadsScalarsAsKubernetesDoes) {
  EXPECT_EQ(
      OneAsJson(
          "{a: 1, b: yes, c: 'yes', d: 1.5, e: ~, f: 0x10, g: 010, h: x, i: \"3\", j: 1e3, k: -4}"),
      R"({"a":1,"b":true,"c":"yes","d":1.5,"e":null,"f":16,"g":8,"h":"x","i":"3","j":1000.0,"k":-4})");
}

TEST(ParseYaml, ReadsIntegersUpToBothEndsOfTheirRange) {
  EXPECT_EQ(OneAsJson("[-9223372036854775808, 9223372036854775807, 18446744073709551615]"),
            "[-9223372036854775808,9223372036854775807,18446744073709551615]");
  EXPECT_EQ(OneAsJson("[-0x8000000000000000, -0, -1]"), "[-9223372036854775808,0,-1]");
  const Json beyond = ParseYaml("[-9223372036854775809, 18446744073709551616]", "doc")->front();
  for (const Json& number : beyond) EXPECT_TRUE(number.is_number_float()) << number;
}

TEST(ParseYaml, KeepsWordsThatOnlyLookLikeNumbers) {
  EXPECT_EQ(OneAsJson("[1.2.3, 10m, 1Gi, '-', 12:30, v1]"),
            R"(["1.2.3","10m","1Gi","-","12:30","v1"])");
}

TEST(ParseYaml, ReadsSeveralDocumentsAndSkipsEmptyOnes) {
  StatusOr<std::vector<Json>> documents = ParseYaml("a: 1\n---\n---\nb: 2\n", "doc");
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->size(), 2u);
}

TEST(ParseYaml, ResolvesAnchorsAndMergeKeys) {
  EXPECT_EQ(OneAsJson("base: &b {x: 1, y: 2}\nd: {<<: *b, y: 3}\n"),
            R"({"base":{"x":1,"y":2},"d":{"x":1,"y":3}})");
}

TEST(ParseYaml, NamesDocumentLineAndColumn) {
  EXPECT_EQ(OneAsJson("a: 1\na: 2\n"), "doc: line 2, column 1: duplicate key \"a\"");
  EXPECT_NE(OneAsJson("a: [1\n").find("doc: line "), std::string::npos) << OneAsJson("a: [1\n");
}

TEST(ParseYaml, BoundsAliasExpansion) {
  std::string text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) text += (i ? ",*" : "*") + before;
    text += "]\n";
  }
  EXPECT_NE(OneAsJson(text).find("aliases expand"), std::string::npos);
}

TEST(ParseYaml, BoundsAliasesOfLongTexts) {
  std::string text = "a: &a " + std::string(3000, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) text += (i ? ",*a" : "*a");
  EXPECT_NE(OneAsJson(text + "]").find("aliases expand"), std::string::npos);
}

TEST(ParseYaml, BoundsWhatNestedAnchorsKeep) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += StrCat("&a", i, " [");
  text += std::string(2000, 'x') + std::string(150, ']');
  const std::string result = OneAsJson(text);
  EXPECT_NE(result.find("anchors and aliases expand to more than "), std::string::npos)
      << result.substr(0, 200);
}

TEST(ParseYaml, CountsAnchorsInKeysAndAcceptsUsualOnes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += StrCat("&k", i, " key", i, ": &v", i, " [", i, "]\n");
  EXPECT_TRUE(OneAsJson(text).starts_with("{\"key0\":[0"));
  text = "base: &base {image: " + std::string(50'000, 'x') + "}\nlist: [";
  for (int i = 0; i < 3; ++i) text += i ? ",*base" : "*base";
  EXPECT_TRUE(OneAsJson(text + "]").starts_with("{\"base\":{\"image\":"));
}

TEST(ParseYaml, RefusesAnAliasInsideItsOwnValue) {
  EXPECT_EQ(OneAsJson("a: &a [*a]"),
            "doc: line 1, column 8: an alias is inside the value it refers to");
}

TEST(ParseYaml, EndsAtTextThatIsNoDocument) {
  EXPECT_EQ(OneAsJson(", &"), "doc: line 1, column 1: no document can begin here");
  EXPECT_EQ(OneAsJson("a: 1\n---\n, b: 2"), "doc: line 3, column 1: no document can begin here");
}

TEST(ParseYaml, KeysAreStrings) {
  EXPECT_EQ(OneAsJson("1: a\ntrue: b\n'<<': c"), R"({"1":"a","<<":"c","true":"b"})");
  for (const char* text : {"[a]: b", "{a: b}: c", "~: a", "? &a [x]\n: y", "&b {}: *b"}) {
    EXPECT_NE(OneAsJson(text).find("a key must be a string"), std::string::npos) << text;
  }
  EXPECT_EQ(OneAsJson("a: &k key\n*k : 1"), R"({"a":"key","key":1})");
}

TEST(ParseYaml, MergeKeysTakeMappingsOnly) {
  EXPECT_EQ(OneAsJson("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {z: 0, <<: [*a, *b]}"),
            R"({"a":{"x":1},"b":{"x":2,"y":2},"c":{"x":1,"y":2,"z":0}})");
  EXPECT_NE(OneAsJson("c: {<<: 7}").find("takes mappings"), std::string::npos);
}

TEST(PrintYaml, ReadsBackEqual) {
  Json value = *ParseJson(
      R"({"a":"yes","b":[1,"2",{}],"c":{"d":null,"e":[]},"f":"x: y","g":"","h":1.5})", "doc");
  StatusOr<std::vector<Json>> again = ParseYaml(PrintYaml(value), "printed");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintJson(again->front()), PrintJson(value)) << PrintYaml(value);
}

TEST(PrintYaml, ReadsBackTextWithNul) {
  for (const std::string& text : {std::string("\0", 1), std::string("1\0x", 3),
                                  std::string("a\0", 2), std::string("\u00e9: \0 #", 7)}) {
    const Json value = {{"k", text}, {text, 1}};
    const StatusOr<std::vector<Json>> again = ParseYaml(PrintYaml(value), "printed");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PrintJson(again->front()), PrintJson(value));
  }
}

TEST(ParseYaml, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(Message(ParseYaml("a: b\nc: \xff\n", "f.yaml").status()),
            "f.yaml: line 2: the text is not UTF-8");
}

// yaml-cpp would end the number at the NUL byte.
TEST(ParseYaml, RefusesNulBytesButReadsTheirEscapes) {
  EXPECT_EQ(Message(ParseYaml(std::string("a: b\nc: 1\0x\n", 12), "f.yaml").status()),
            "f.yaml: line 2: a NUL byte; write \"\\0\" in double quotes");
  EXPECT_EQ(PrintJson((*ParseYaml(R"(a: "1\0x")", "f.yaml"))[0]), R"({"a":"1\u0000x"})");
}

TEST(ParseYaml, ANumberBeyondDoublesStaysText) {
  EXPECT_EQ(PrintJson((*ParseYaml("a: 1e999", "f.yaml"))[0]), R"({"a":"1e999"})");
}

}  // namespace
}  // namespace tfjob
