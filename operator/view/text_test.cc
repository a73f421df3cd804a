#include <gtest/gtest.h>

#include "operator/view/human.h"
#include "operator/view/printable.h"
#include "operator/view/table.h"

namespace tfjob::view {
namespace {

TEST(HumanDurationTest, IsWrittenAsKubectlWritesAges) {
  const std::vector<std::pair<Duration, const char*>> cases = {
      {0s, "0s"},           {-5s, "0s"},          {59s, "59s"},
      {119s, "119s"},       {2min, "2m"},         {5min + 12s, "5m12s"},
      {11min + 5s, "11m"},  {179min, "179m"},     {3h + 4min, "3h4m"},
      {7h, "7h"},           {9h + 59min, "9h"},   {47h, "47h"},
      {50h, "2d2h"},        {8 * 24h, "8d"},      {700 * 24h, "700d"},
      {740 * 24h, "2y10d"}, {9 * 365 * 24h, "9y"}};
  for (const auto& [duration, text] : cases) EXPECT_EQ(HumanDuration(duration), text);
  EXPECT_EQ(HumanAge(Time(), *ParseTime("2026-11-21T09:00:00Z")), "<unknown>");
}

TEST(HumanDurationTest, ChangesItsUnitsWhereKubectlDoes) {
  const auto days = [](int64_t n) { return n * Duration(24h); };
  const std::vector<std::pair<Duration, const char*>> cases = {{2min - 1us, "119s"},
                                                               {10min - 1s, "9m59s"},
                                                               {10min, "10m"},
                                                               {3h - 1s, "179m"},
                                                               {3h, "3h"},
                                                               {8h - 1min, "7h59m"},
                                                               {8h, "8h"},
                                                               {48h - 1s, "47h"},
                                                               {48h, "2d"},
                                                               {days(8) - 1s, "7d23h"},
                                                               {days(8), "8d"},
                                                               {days(730) - 1s, "729d"},
                                                               {days(730), "2y"},
                                                               {days(731), "2y1d"},
                                                               {days(8 * 365) - 1s, "7y364d"},
                                                               {days(8 * 365), "8y"},
                                                               {days(8 * 365 + 1), "8y"}};
  for (const auto& [duration, text] : cases) EXPECT_EQ(HumanDuration(duration), text);
  const Time then = *ParseTime("2026-11-21T09:00:00Z");
  EXPECT_EQ(HumanAge(then, then + 5min), "5m");
  EXPECT_EQ(HumanAge(then, then - 1h), "0s");
}

TEST(TableTest, WritesItsHeaderOnceEvenWithoutRows) {
  Table table({"NAME", "AGE"});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Take(), "NAME   AGE\n");
  EXPECT_EQ(table.Take(), "");
  table.Add({"longer", "5s"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.Take(), "longer   5s\n");
  EXPECT_TRUE(table.empty());
}

TEST(TableTest, AlignsAndKeepsItsWidths) {
  Table table({"NAME", "AGE"});
  table.Add({"a-long-name", "5s"});
  EXPECT_EQ(table.Take(), "NAME          AGE\na-long-name   5s\n");
  table.Add({"b", ""});
  EXPECT_EQ(table.Take(), "b             <none>\n");
}

TEST(TableTest, CountsCharactersRatherThanBytes) {
  Table table({"N", "V"}, "  ");
  table.Add({"größe", "1"});
  table.Add({"abcde", "2"});
  EXPECT_EQ(table.Take(), "  N       V\n  größe   1\n  abcde   2\n");
}

TEST(PrintableTest, EscapesControlCharactersAndNothingElse) {
  EXPECT_EQ(PrintableLine("plain, é, 日本, 🚀, \t tab"), "plain, é, 日本, 🚀, \t tab");
  EXPECT_EQ(PrintableLine("\x1b[2J\a\b\r\n\x7f"), "\\u001b[2J\\u0007\\u0008\\u000d\\u000a\\u007f");
  EXPECT_EQ(PrintableLine(std::string("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(PrintableLine("\xc2\x9b"
                          "31m \xc2\x80 \xc2\x9f \xc2\xa0"),
            "\\u009b31m \\u0080 \\u009f \xc2\xa0");
  EXPECT_EQ(PrintableText("one\ntwo\r\n\x1b"), "one\ntwo\\u000d\n\\u001b");
}

TEST(PrintableTest, EscapesBytesThatAreNotText) {
  EXPECT_EQ(PrintableLine("\x9b"
                          "2J"),
            "\\x9b2J");
  EXPECT_EQ(PrintableLine("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(PrintableLine("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(PrintableLine("\xff"
                          "é"),
            "\\xffé");
  // For any bytes, the result must not contain anything that a terminal could interpret.
  std::string all;
  for (int i = 0; i < 256; ++i) all += {static_cast<char>(i), 'x', static_cast<char>(255 - i)};
  const std::string safe = PrintableLine(all);
  for (const char c : safe) EXPECT_TRUE(c == '\t' || (c >= 0x20 && c < 0x7f) || (c & 0x80) != 0);
  EXPECT_EQ(PrintableLine(safe), safe);
}

TEST(PrintableTest, CutsBetweenCharacters) {
  EXPECT_EQ(CutText("abc", 5), "abc");
  EXPECT_EQ(CutText("abc", 2), "ab");
  EXPECT_EQ(CutText("aé", 2), "a");
  EXPECT_EQ(CutText("aé", 3), "aé");
  EXPECT_EQ(CutText("🚀", 3), "");
}

TEST(TableTest, CellsCannotSteerTheTerminalOrForgeRows) {
  Table table({"NAME", "MESSAGE"});
  table.Add({"a\x1b[1A", "lost\nb      fine"});
  EXPECT_EQ(table.Take(),
            "NAME         MESSAGE\n"
            "a\\u001b[1A   lost\\u000ab      fine\n");
}

}  // namespace
}  // namespace tfjob::view
