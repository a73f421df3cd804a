// Runs every *.timeline file of this folder as a test.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "tests/timelines/player.h"
#include "tests/timelines/timeline.h"

namespace tfjob::timelines {
namespace {

constexpr char kFolder[] = "tests/timelines";
constexpr std::string_view kSuffix = ".timeline";

std::vector<std::string> TimelineNames() {
  std::vector<std::string> names;
  for (const std::string& file : ListDirectory(kFolder).value_or(std::vector<std::string>())) {
    if (file.size() <= kSuffix.size()) continue;
    const size_t stem = file.size() - kSuffix.size();
    if (file.compare(stem, kSuffix.size(), kSuffix) == 0) names.push_back(file.substr(0, stem));
  }
  return names;
}

class TimelineTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TimelineTest, HoldsItsRule) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  const auto text = ReadFile(StrCat(kFolder, "/", GetParam(), kSuffix));
  ASSERT_TRUE(text.ok()) << text.status();
  const auto steps = ParseTimeline(*text);
  ASSERT_TRUE(steps.ok()) << steps.status();
  Player player;
  const Status played = player.Play(*steps);
  EXPECT_TRUE(played.ok()) << GetParam() << kSuffix << " " << Message(played);
}

INSTANTIATE_TEST_SUITE_P(Files, TimelineTest, ::testing::ValuesIn(TimelineNames()),
                         [](const auto& timeline) {
                           std::string name = timeline.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Fails if the folder is missing. Without this test, the suite would then pass without running any
// timeline.
TEST(TimelineFiles, AreFound) {
  EXPECT_GE(TimelineNames().size(), 60u);
}

TEST(TimelineText, NamesTheLineOfAnError) {
  EXPECT_FALSE(ParseTimeline("mark\napply\n  a: [").ok());
  EXPECT_FALSE(ParseTimeline("expect \"x").ok());
  const auto steps = ParseTimeline("# c\nmark # c\nexpect event X \"a b\" 1\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[1].line, 3);
  EXPECT_EQ((*steps)[1].words[3], "a b");
  Player player;
  const Status status = player.Play(*ParseTimeline("\nadvance soon"));
  EXPECT_EQ(Message(status).substr(0, 21), "line 2: advance soon:");
}

}  // namespace
}  // namespace tfjob::timelines
