#include "runtime/api/fit/progress_bar.h"

#include <gtest/gtest.h>

#include "runtime/base/fake_clock.h"

namespace tfjob::api {
namespace {

// Returns the text without control codes of the terminal.
std::string Plain(std::string text) {
  for (size_t at = text.find("\x1b["); at != std::string::npos; at = text.find("\x1b["))
    text.erase(at, text.find_first_of("mK", at) - at + 1);
  return text;
}

std::string Blocks(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "━";
  return text;
}

TEST(ProgressBar, ShowsWhatIsDoneAndTheTimeThatIsLeft) {
  EXPECT_EQ(Plain(BarText(25, 100, 5s)), "25/100 " + Blocks(20) + " 15s 200ms/step");
  EXPECT_EQ(Plain(BarText(100, 100, 5s)), "100/100 " + Blocks(20) + " 5s 50ms/step");
  EXPECT_EQ(Plain(BarText(1, 7200, 1s)), "1/7200 " + Blocks(20) + " 1:59:59 1s/step");
  const std::string half = BarText(10, 20, 1s);
  EXPECT_NE(half.find("\x1b[32m" + Blocks(10) + "\x1b[0m\x1b[37m" + Blocks(10) + "\x1b[0m"),
            std::string::npos)
      << half;
}

TEST(ProgressBar, ShowsMetricsInTheOrderOfTheirNames) {
  EXPECT_EQ(MetricsText(Metrics({{"loss", 0.53125}, {"accuracy", 0.81234}, {"val_loss", 0.0001}})),
            " - accuracy: 0.8123 - loss: 0.5312 - val_loss: 1.0000e-04");
}

TEST(ProgressBar, ChoosesTheUnitOfTime) {
  EXPECT_EQ(TimePerStepText(6s, 2), "3s/step");
  EXPECT_EQ(TimePerStepText(6s, 200), "30ms/step");
  EXPECT_EQ(TimePerStepText(6ms, 200), "30us/step");
}

TEST(ProgressBar, MovesAtMostTenTimesPerSecond) {
  FakeClock clock(Time(1s));
  testing::internal::CaptureStdout();
  ProgressBar bar(Verbose::kBar, clock);
  bar.BeginEpoch(0, 3, 0, 10);
  EXPECT_FALSE(bar.Due());
  clock.Advance(100ms);
  EXPECT_TRUE(bar.Due());
  bar.Update(4, Metrics({{"loss", 2}}));
  EXPECT_FALSE(bar.Due());
  clock.Advance(900ms);
  bar.EndEpoch(Metrics({{"loss", 1}}));
  EXPECT_EQ(Plain(testing::internal::GetCapturedStdout()),
            "Epoch 1/3\n\r4/10 " + Blocks(20) + " 0s 25ms/step - loss: 2.0000" + "\r10/10 " +
                Blocks(20) + " 1s 100ms/step - loss: 1.0000\n");
}

TEST(ProgressBar, OtherwisePrintsALinePerEpoch) {
  FakeClock clock(Time(1s));
  testing::internal::CaptureStdout();
  ProgressBar bar(Verbose::kEpochs, clock);
  bar.BeginEpoch(2, 3, 0, 10);
  clock.Advance(2s);
  EXPECT_FALSE(bar.Due());
  bar.EndEpoch(Metrics({{"loss", 1}}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "Epoch 3/3\n10/10 - 2s - 200ms/step - loss: 1.0000\n");
}

}  // namespace
}  // namespace tfjob::api
