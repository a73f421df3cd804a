#include "operator/api/quantity.h"

#include <gtest/gtest.h>

namespace tfjob::api {
namespace {

std::string Reprint(std::string_view text) {
  const auto quantity = ParseQuantity(text);
  return quantity.ok() ? ToString(*quantity) : "error";
}

TEST(Quantity, ReadsEveryFormAndPrintsAShortOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},        {"1", "1"},         {"500m", "500m"},    {"1500m", "1500m"},
      {"2000m", "2"},    {"0.5", "500m"},    {"1.5Gi", "1536Mi"}, {"8Gi", "8Gi"},
      {"1024Mi", "1Gi"}, {"1k", "1000"},     {"2e3", "2000"},     {"1E", "1000000000000000000"},
      {"100n", "100n"},  {"1500u", "1500u"}, {"-1", "-1"},        {"+3", "3"},
      {"1E2", "100"},    {".5", "500m"},     {"5.", "5"},         {"0.0000000001", "1n"}};
  for (const auto& [text, printed] : cases) EXPECT_EQ(Reprint(text), printed) << text;
}

TEST(Quantity, RefusesTheRest) {
  for (const char* text : {"", "x", "1 Gi", "1gi", "1.2.3", "Gi", "1e", "1e99", "1e+-3",
                           "99999999999999999999", "999999999999999999E", "--1", "1KiB"}) {
    EXPECT_EQ(ParseQuantity(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Quantity, AddsExactly) {
  const auto sum = [](const char* a, const char* b) {
    return ToString(*ParseQuantity(a) + *ParseQuantity(b));
  };
  EXPECT_EQ(sum("500m", "1.5"), "2");
  EXPECT_EQ(sum("8Gi", "4Gi"), "12Gi");
  EXPECT_EQ(sum("0", "4Gi"), "4Gi");
  EXPECT_EQ(sum("1Gi", "1"), "1073741825");
  EXPECT_EQ(*ParseQuantity("1000m"), *ParseQuantity("1"));
}

}  // namespace
}  // namespace tfjob::api
