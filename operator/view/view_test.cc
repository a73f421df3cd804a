#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/view/job_view.h"
#include "operator/view/pod_key.h"
#include "operator/view/screen.h"
#include "runtime/base/file.h"

namespace tfjob::view {
namespace {

using State = objects::ContainerStatus::State;

TEST(JobViewTest, WritesReplicasByState) {
  JobView view;
  view.name = "mnist";
  view.state = "Running";
  view.replicas[api::ReplicaType::kChief] = {.running = 1};
  view.replicas[api::ReplicaType::kWorker] = {.pending = 1, .running = 2, .failed = 1};
  EXPECT_EQ(ReplicasText(view), "chief 1 running, worker 2 running 1 pending 1 failed");
  EXPECT_EQ(LiveLine(view, 200),
            "mnist  Running  chief 1 running, worker 2 running 1 pending 1 failed");
  EXPECT_EQ(LiveLine(view, 14), "mnist  Running");
  view.state = "Läuft";
  EXPECT_EQ(LiveLine(view, 9), "mnist  L");
}

TEST(JobViewTest, WritesProgress) {
  JobView view;
  EXPECT_EQ(ProgressText(view), "");
  progress::Progress training;
  training.state = progress::State::kTraining;
  training.step = 300;
  training.max_steps = 9380;
  training.steps_per_s = 812.34;
  training.loss = 0.41236;
  training.metrics = {{"accuracy", 0.8519}};
  training.seconds_left = 71.2;
  view.training = training;
  EXPECT_EQ(ProgressText(view),
            "step 300/9380, 812.3 steps/s, loss 0.4124, accuracy 0.8519, 1m11s left");
  view.training = progress::Progress();
  view.training->seconds_left = 1e300;
  EXPECT_EQ(ProgressText(view), "878400h left");
  view.training->seconds_left = -1e300;
  EXPECT_EQ(ProgressText(view), "0 left");
  view.evaluation = progress::Progress();
  view.evaluation->metrics = {{"accuracy", 0.87}, {"loss", 0.3}};
  view.training = progress::Progress();
  view.training->state = progress::State::kWaiting;
  view.training->waiting_for = "/job:ps/task:1";
  EXPECT_EQ(ProgressText(view), "waiting for /job:ps/task:1, test accuracy 0.87");
}

TEST(JobViewTest, TellsWhatFailsWhileTheJobGoesOn) {
  JobView view;
  EXPECT_TRUE(Problems(view).empty());
  view.training = progress::Progress();
  view.training->step = 300;
  view.training->problems = {{"checkpoints", "the disk is full"}};
  EXPECT_EQ(Problems(view), std::vector<std::string>{"the disk is full"});
  EXPECT_EQ(ProgressText(view), "step 300, with problems");
}

TEST(JobViewTest, TellsEachNewConditionOnce) {
  api::TFJobStatus before, now;
  before.conditions = {{api::ConditionType::kCreated, true, "A", "created", {}, {}}};
  now.conditions = {{api::ConditionType::kCreated, true, "A", "created", {}, {}},
                    {api::ConditionType::kRunning, false, "B", "was running", {}, {}},
                    {api::ConditionType::kFailed, true, "C", "it failed", {}, {}}};
  EXPECT_EQ(NewConditions(before, now), std::vector<std::string>{"Failed: it failed"});
}

TEST(PodKeyTest, IsInTheEnvironmentOfTheTrainer) {
  const std::string hex(64, 'a');
  const auto key = [](const std::string& containers) {
    return KeyOfPod(*ParseJson(StrCat(R"({"spec": {"containers": )", containers, "}}"), "pod"));
  };
  const auto of = [](const std::string& value) {
    return StrCat(R"({"name": "TFJOB_KEY", "value": ")", value, "\"}");
  };
  const auto found = key(StrCat(R"([{"name": "sidecar"}, {"name": "tensorflow", "env": [)",
                                of("(set)"), ",", of(hex), R"(, {"name": "TFJOB_UID"}]}])"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->Sign({"x"}), wire::JobKey::Parse(hex)->Sign({"x"}));
  EXPECT_FALSE(key(StrCat(R"([{"name": "sidecar", "env": [)", of(hex), "]}]")).has_value());
  EXPECT_FALSE(
      key(R"([7, {"name": "tensorflow", "env": [7, {"name": "TFJOB_KEY"}]}])").has_value());
  EXPECT_FALSE(key("7").has_value());
}

TEST(PodReporterTest, TellsEndsWaitsAndRestartsOnce) {
  PodReporter reporter;
  objects::Pod pod;
  pod.metadata.name = "mnist-ps-0";
  pod.containers.resize(1);
  objects::ContainerStatus& container = pod.containers[0];
  container.name = "tensorflow";
  container.reason = "PodInitializing";
  EXPECT_TRUE(reporter.Report(pod).empty());
  container.state = State::kRunning;
  container.reason = "";
  EXPECT_TRUE(reporter.Report(pod).empty());
  container.state = State::kTerminated;
  container.exit_code = 137;
  container.reason = "OOMKilled";
  EXPECT_EQ(reporter.Report(pod),
            std::vector<std::string>{"mnist-ps-0: tensorflow exited with code 137 (OOMKilled)"});
  EXPECT_TRUE(reporter.Report(pod).empty());
  container.state = State::kRunning;
  container.restart_count = 1;
  EXPECT_EQ(reporter.Report(pod),
            std::vector<std::string>{"mnist-ps-0: tensorflow restarted, 1 so far"});
  container.state = State::kWaiting;
  container.reason = "ErrImageNotLocal";
  container.message = "no such image";
  EXPECT_EQ(reporter.Report(pod),
            std::vector<std::string>{
                "mnist-ps-0: tensorflow is waiting (ErrImageNotLocal: no such image)"});
  EXPECT_TRUE(reporter.Report(pod).empty());
}

TEST(ScreenTest, KeepsLiveLinesBelowTheOthers) {
  std::istringstream in;
  std::ostringstream out;
  Console console{in, out, out, true};
  {
    Screen screen(console);
    screen.Line("one");
    screen.Live({"live"});
    screen.Live({"live"});
    screen.Line("two");
  }
  EXPECT_EQ(out.str(), "one\nlive\n\x1b[1A\x1b[2Ktwo\nlive\n\x1b[1A\x1b[2K");
}

TEST(ScreenTest, LinesCannotSteerTheTerminal) {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err, true};
  {
    Screen screen(console);
    screen.Line("one\x1b[2J\r");
    screen.Live({"live\x1b]0;x\a", std::string(500, 'x')});
    ASSERT_LT(screen.width(), 500u);
    EXPECT_EQ(out.str(), "one\\u001b[2J\\u000d\nlive\\u001b]0;x\\u0007\n" +
                             std::string(screen.width(), 'x') + "\n");
  }
  PrintError(console, InvalidArgument("bad\x1b[2J\nworse\r"));
  PrintWarning(console, "odd\x1b\n");
  EXPECT_EQ(err.str(),
            "tfjob: bad\\u001b[2J\ntfjob: worse\\u000d\ntfjob: warning: odd\\u001b\\u000a\n");
}

TEST(ScreenTest, ShowsOnlyAsManyLiveLinesAsItCanOverwrite) {
  std::istringstream in;
  std::ostringstream out;
  Console console{in, out, out, true};
  Screen screen(console);
  const size_t height = screen.height();
  ASSERT_GE(height, 2u);
  std::string fitting;
  for (size_t i = 0; i + 1 < height; ++i) fitting += "job\n";
  screen.Live(std::vector<std::string>(height, "job"));
  EXPECT_EQ(out.str(), fitting + "job\n");
  screen.Live({});
  out.str("");
  screen.Live(std::vector<std::string>(height + 7, "job"));
  EXPECT_EQ(out.str(), fitting + "and 8 more\n");
}

TEST(ScreenTest, ShowsNoLiveLinesWithoutATerminal) {
  std::istringstream in;
  std::ostringstream out;
  Console console{in, out, out, false};
  Screen screen(console);
  screen.Live({"live"});
  screen.Line("one");
  EXPECT_EQ(out.str(), "one\n");
  EXPECT_EQ(screen.width(), 0u);
  EXPECT_EQ(screen.height(), 0u);
}

}  // namespace
}  // namespace tfjob::view
