#include "operator/view/duration.h"

#include <gtest/gtest.h>

namespace tfjob::view {
namespace {

TEST(ParseDurationTest, ReadsSumsOfUnits) {
  EXPECT_EQ(*ParseDuration("30s"), 30s);
  EXPECT_EQ(*ParseDuration("1h30m"), 90min);
  EXPECT_EQ(*ParseDuration("250ms"), 250ms);
  EXPECT_EQ(*ParseDuration("7us"), 7us);
  EXPECT_EQ(*ParseDuration("2m40s"), 160s);
  EXPECT_EQ(*ParseDuration("0"), 0s);
  EXPECT_EQ(*ParseDuration("0s"), 0s);
}

TEST(ParseDurationTest, ReadsFractions) {
  EXPECT_EQ(*ParseDuration("0.5s"), 500ms);
  EXPECT_EQ(*ParseDuration("1.5h"), 90min);
  EXPECT_EQ(*ParseDuration("1m0.25s"), 60250ms);
}

TEST(ParseDurationTest, RoundsAndHasBounds) {
  EXPECT_EQ(*ParseDuration("0.4us"), 0us);
  EXPECT_EQ(*ParseDuration("0.5us"), 1us);
  EXPECT_EQ(*ParseDuration(".5s"), 500ms);
  EXPECT_EQ(*ParseDuration("1s1s1m"), 62s);  // any order, as in Go
  EXPECT_EQ(*ParseDuration("1000000000h"), 1'000'000'000h);
  EXPECT_FALSE(ParseDuration("1000000001h").ok());
  EXPECT_FALSE(ParseDuration("1000000000h1s").ok());
  EXPECT_FALSE(ParseDuration("00").ok());  // only "0" needs no unit
}

TEST(ParseDurationTest, RefusesOtherWords) {
  for (const char* text : {"", "5", "s", "5 s", "-5s", "5x", "99999999999s", "1h30", "infs", "nans",
                           "1e3s", "1d", "1000000000h1000000000h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_EQ(Message(ParseDuration("soon").status()),
            "expected a duration such as 30s, 5m or 1h30m, got \"soon\"");
}

}  // namespace
}  // namespace tfjob::view
