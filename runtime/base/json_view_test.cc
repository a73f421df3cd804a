#include "runtime/base/json_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob {
namespace {

constexpr char kText[] =
    R"({"s":"é\n","i":-7,"big":9223372036854775808,"b":true,"f":1.5,"none":null,
        "list":[1,"two",null],"map":{"z":"1","a":{"x":2}}})";

TEST(JsonView, ReadsTypesAsTheyAre) {
  JsonDocument document;
  const StatusOr<JsonView> root = document.Parse(kText);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(*(*root)["s"].String(), "é\n");
  EXPECT_EQ(*(*root)["i"].Int32(), -7);
  EXPECT_TRUE(*(*root)["b"].Bool());
  EXPECT_EQ((*root)["list"].Elements()->size(), 3u);
  EXPECT_EQ((*root)["map"].Members()->front().first, "z");
  EXPECT_EQ((*root)["map"]["a"]["x"].Int().value(), 2);
  EXPECT_EQ((*root)["s"].Text(), "é\n");
}

TEST(JsonView, RefusesOtherTypes) {
  JsonDocument document;
  const JsonView root = *document.Parse(kText);
  EXPECT_FALSE(root["s"].Int().ok());
  EXPECT_FALSE(root["i"].String().ok());
  EXPECT_FALSE(root["f"].Int().ok());
  EXPECT_FALSE(root["big"].Int().ok());
  EXPECT_FALSE(root["i"].Elements().ok());
  EXPECT_FALSE(root["list"].Members().ok());
  EXPECT_EQ(Message(root["i"].Bool().status()), "expected true or false");
}

TEST(JsonView, AbsentAndNullAreNotPresent) {
  JsonDocument document;
  const JsonView root = *document.Parse(kText);
  EXPECT_FALSE(root["none"].present());
  EXPECT_FALSE(root["nothing"]["below"].present());
  EXPECT_TRUE(root["nothing"].Elements()->empty());
  EXPECT_TRUE(root["nothing"].Members()->empty());
  EXPECT_FALSE(root["list"].Elements()->at(2).present());
  EXPECT_FALSE(root["nothing"].IsObject());
}

TEST(JsonView, BecomesADom) {
  JsonDocument document;
  EXPECT_EQ(ToJson(*document.Parse(kText)), *ParseJson(kText, "text"));
  EXPECT_EQ(ToJson(JsonView()), nullptr);
}

TEST(JsonView, ReadsNumbersAsDoubles) {
  JsonDocument document;
  const JsonView root =
      *document.Parse(R"({"i": -3, "u": 18446744073709551615, "d": 0.25, "s": "1"})");
  EXPECT_EQ(*root["i"].Double(), -3);
  EXPECT_EQ(*root["u"].Double(), 0x1p64);
  EXPECT_EQ(*root["d"].Double(), 0.25);
  EXPECT_EQ(Message(root["s"].Double().status()), "expected a number");
  EXPECT_FALSE(root["none"].Double().ok());
}

TEST(JsonView, VisitsMembersAndElementsUntilAnError) {
  JsonDocument document;
  const JsonView root = *document.Parse(R"({"a": [1, null, "x"], "b": {}, "c": true, "a": 2})");
  std::string visited;
  const Status end = root.ForEachMember([&](std::string_view name, JsonView member) {
    visited += StrCat(name, ": ", member.TypeName(), ", ");
    return OkStatus();
  });
  EXPECT_EQ(end, OkStatus());
  EXPECT_EQ(visited, "a: a list, b: an object, c: a boolean, a: a number, ");
  visited.clear();
  const Status stopped = root["a"].ForEachElement([&](JsonView element) {
    visited += StrCat(element.TypeName(), ", ");
    return element.present() ? OkStatus() : Cancelled("enough");
  });
  EXPECT_EQ(Message(stopped), "enough");
  EXPECT_EQ(visited, "a number, null, ");
  const auto none = [](JsonView) { return OkStatus(); };
  EXPECT_EQ(Message(root["b"].ForEachElement(none)), "expected a list");
  EXPECT_FALSE(JsonView().ForEachElement(none).ok());
  EXPECT_EQ(JsonView().TypeName(), "null");
}

TEST(JsonView, ReadsValuesIfTheyHaveTheType) {
  JsonDocument document;
  const StatusOr<JsonView> parsed =
      document.Parse(R"({"i": -7, "d": 2.0, "big": 18446744073709551615, "b": true, "n": null})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const JsonView& root = *parsed;
  EXPECT_EQ(root["i"].IfInt(), -7);
  EXPECT_EQ(root["i"].IfDouble(), -7.0);
  EXPECT_EQ(root["d"].IfInt(), std::nullopt);
  EXPECT_EQ(root["d"].IfDouble(), 2.0);
  EXPECT_EQ(root["big"].IfInt(), std::nullopt);
  EXPECT_EQ(root["big"].IfDouble(), 0x1p64);
  EXPECT_EQ(root["b"].IfBool(), true);
  EXPECT_EQ(root["b"].IfDouble(), std::nullopt);
  for (const char* name : {"n", "missing"}) {
    EXPECT_EQ(root[name].IfInt(), std::nullopt);
    EXPECT_EQ(root[name].IfDouble(), std::nullopt);
    EXPECT_EQ(root[name].IfBool(), std::nullopt);
  }
}

TEST(JsonView, RefusesWhatIsNotJson) {
  JsonDocument document;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{\"a\":1}x"), std::string("{\"a\":\"\xff\"}"),
        std::string(300, '['), std::string(300, '[') + std::string(300, ']'),
        std::string("{\"a\":1e999}"), std::string("nul")}) {
    EXPECT_FALSE(document.Parse(text).ok()) << text;
  }
  // After the error, the document can parse another text.
  EXPECT_TRUE(document.Parse("{}").ok());
}

TEST(JsonView, ReadsLongTextsAfterShortOnes) {
  JsonDocument document;
  for (size_t size : {10u, 100000u, 3000000u, 2000000u, 10u, 3000000u}) {
    const std::string text = "[\"" + std::string(size, 'x') + "\"]";
    const StatusOr<JsonView> root = document.Parse(text);
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(root->Elements()->at(0).Text().size(), size);
  }
}

}  // namespace
}  // namespace tfjob
