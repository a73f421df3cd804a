#include "operator/local/process/lifecycle.h"

#include <gtest/gtest.h>

namespace tfjob::process {
namespace {

using Kind = PodLifecycle::Action::Kind;
using objects::PodPhase;
using ContainerState = objects::ContainerStatus::State;

class LifecycleTest : public ::testing::Test {
 protected:
  void Make(PodRestartPolicy policy, std::vector<bool> init = {false}) {
    spec_ = PodSpec();
    spec_.restart_policy = policy;
    for (size_t i = 0; i < init.size(); ++i) {
      Container container;
      container.name = StrCat("c", i);
      container.init = init[i];
      spec_.containers.push_back(container);
    }
    objects::Pod pod;
    pod.metadata.name = "pod";
    PodLifecycle::Options options;
    options.crash_backoff = {10s, 300s, 2.0, 0.0};
    lifecycle_.emplace(spec_, pod, options, now_);
  }
  void Wait(Duration by) {
    now_.wall += by;
    now_.steady += by;
  }
  // Returns the actions that are due now, such as "launch 0 kill 1".
  std::string Due() {
    std::string text;
    for (const PodLifecycle::Action& action : lifecycle_->Advance(now_)) {
      const char* names[] = {"launch", "terminate", "kill", "delete"};
      text += StrCat(text.empty() ? "" : " ", names[static_cast<int>(action.kind)], " ",
                     action.container);
    }
    return text;
  }
  void End(size_t container, int code, int signal = 0, bool oom = false) {
    lifecycle_->Ended(container, {code, signal, oom}, now_);
  }
  // Launches container 0, which must be the only action due, and lets it exit with `code`.
  void RunOnce(int code) {
    ASSERT_EQ(Due(), "launch 0");
    lifecycle_->Launched(0, now_);
    End(0, code);
  }
  PodPhase phase() const { return lifecycle_->pod().phase; }
  const objects::ContainerStatus& status(size_t i = 0) const {
    return lifecycle_->pod().containers[i];
  }

  Moment now_{ParseTime("2026-01-01T00:00:00Z").value(), 100s};
  PodSpec spec_;
  std::optional<PodLifecycle> lifecycle_;
};

TEST_F(LifecycleTest, RunsToSuccess) {
  Make(PodRestartPolicy::kNever);
  EXPECT_EQ(phase(), PodPhase::kPending);
  EXPECT_EQ(Due(), "launch 0");
  EXPECT_EQ(Due(), "");
  lifecycle_->Launched(0, now_);
  EXPECT_EQ(phase(), PodPhase::kRunning);
  EXPECT_TRUE(status().ready);
  EXPECT_EQ(lifecycle_->pod().condition("Ready")->status, "True");
  EXPECT_EQ(lifecycle_->pod().pod_ip, "127.0.0.1");
  Wait(5s);
  End(0, 0);
  EXPECT_EQ(phase(), PodPhase::kSucceeded);
  EXPECT_EQ(status().reason, "Completed");
  EXPECT_EQ(status().finished_at - status().started_at, 5s);
  EXPECT_EQ(lifecycle_->pod().condition("Ready")->reason, "PodCompleted");
  EXPECT_EQ(Due(), "");
  EXPECT_FALSE(lifecycle_->wake_at());
}

TEST_F(LifecycleTest, EndsByPolicy) {
  struct Case {
    PodRestartPolicy policy;
    int code;
    PodPhase phase;
  };
  const Case cases[] = {{PodRestartPolicy::kNever, 1, PodPhase::kFailed},
                        {PodRestartPolicy::kNever, 0, PodPhase::kSucceeded},
                        {PodRestartPolicy::kOnFailure, 0, PodPhase::kSucceeded},
                        {PodRestartPolicy::kOnFailure, 1, PodPhase::kRunning},
                        {PodRestartPolicy::kAlways, 0, PodPhase::kRunning},
                        {PodRestartPolicy::kAlways, 1, PodPhase::kRunning}};
  for (const Case& each : cases) {
    Make(each.policy);
    RunOnce(each.code);
    EXPECT_EQ(phase(), each.phase);
    EXPECT_EQ(Due(), each.phase == PodPhase::kRunning ? "launch 0" : "");
  }
}

TEST_F(LifecycleTest, RestartsAtOnceThenBacksOffTwiceAsLong) {
  Make(PodRestartPolicy::kOnFailure);
  RunOnce(3);
  EXPECT_EQ(status().state, ContainerState::kTerminated);
  RunOnce(3);
  EXPECT_EQ(status().restart_count, 1);
  EXPECT_EQ(status().state, ContainerState::kWaiting);
  EXPECT_EQ(status().reason, "CrashLoopBackOff");
  EXPECT_EQ(status().message, "back-off 10s restarting failed container=c0 pod=pod: exit code 3");
  EXPECT_EQ(phase(), PodPhase::kRunning);
  for (const Duration delay : {Duration(10s), Duration(20s), Duration(40s), Duration(80s),
                               Duration(160s), Duration(300s), Duration(300s)}) {
    EXPECT_EQ(Due(), "");
    EXPECT_EQ(lifecycle_->wake_at(), now_.steady + delay);
    Wait(delay);
    RunOnce(3);
  }
  EXPECT_EQ(status().restart_count, 8);
}

TEST_F(LifecycleTest, ForgetsCrashesAfterALongRun) {
  Make(PodRestartPolicy::kOnFailure);
  RunOnce(1);
  RunOnce(1);
  Wait(10s);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  Wait(10min);
  End(0, 1);
  EXPECT_EQ(Due(), "launch 0");
}

TEST_F(LifecycleTest, RunsInitContainersInOrder) {
  Make(PodRestartPolicy::kOnFailure, {true, true, false, false});
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  EXPECT_EQ(phase(), PodPhase::kPending);
  EXPECT_EQ(Due(), "");
  End(0, 1);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  End(0, 0);
  ASSERT_EQ(Due(), "launch 1");
  lifecycle_->Launched(1, now_);
  EXPECT_EQ(lifecycle_->pod().condition("Initialized")->status, "False");
  End(1, 0);
  EXPECT_EQ(lifecycle_->pod().condition("Initialized")->status, "True");
  EXPECT_EQ(Due(), "launch 2 launch 3");
  lifecycle_->Launched(2, now_);
  EXPECT_EQ(phase(), PodPhase::kPending);
  lifecycle_->Launched(3, now_);
  EXPECT_EQ(phase(), PodPhase::kRunning);
  EXPECT_EQ(status(0).restart_count, 1);
}

TEST_F(LifecycleTest, FailsWithAnInitContainerUnderNever) {
  Make(PodRestartPolicy::kNever, {true, false});
  RunOnce(7);
  EXPECT_EQ(phase(), PodPhase::kFailed);
  EXPECT_EQ(Due(), "");
}

TEST_F(LifecycleTest, NamesSignalsAndMemory) {
  Make(PodRestartPolicy::kNever);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  End(0, 137, 9, true);
  EXPECT_EQ(status().exit_code, 137);
  EXPECT_EQ(status().signal, 9);
  EXPECT_EQ(status().reason, "OOMKilled");
  EXPECT_EQ(phase(), PodPhase::kFailed);
}

TEST_F(LifecycleTest, AFailedStartIsAnEndWithCode128) {
  Make(PodRestartPolicy::kNever);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->LaunchFailed(0, "no such volume", now_);
  EXPECT_EQ(phase(), PodPhase::kFailed);
  EXPECT_EQ(status().exit_code, 128);
  EXPECT_EQ(status().reason, "StartError");
  EXPECT_EQ(status().message, "no such volume");
}

TEST_F(LifecycleTest, AHeldStartWaitsWithoutCounting) {
  Make(PodRestartPolicy::kNever);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->LaunchHeld(0, "ErrImageNotLocal", "x", now_);
  EXPECT_EQ(phase(), PodPhase::kPending);
  EXPECT_EQ(status().reason, "ErrImageNotLocal");
  EXPECT_EQ(Due(), "");
  Wait(10s);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  EXPECT_EQ(status().restart_count, 0);
  EXPECT_EQ(status().message, "");
}

TEST_F(LifecycleTest, DeletionTerminatesThenKillsThenDeletes) {
  Make(PodRestartPolicy::kAlways, {false, false});
  ASSERT_EQ(Due(), "launch 0 launch 1");
  lifecycle_->Launched(0, now_);
  lifecycle_->Launched(1, now_);
  lifecycle_->Delete(30s, now_);
  EXPECT_EQ(Due(), "terminate 0 terminate 1");
  End(0, 143, 15);
  EXPECT_EQ(Due(), "");
  EXPECT_EQ(lifecycle_->wake_at(), now_.steady + 30s);
  Wait(30s);
  EXPECT_EQ(Due(), "kill 1");
  EXPECT_FALSE(lifecycle_->wake_at());
  End(1, 137, 9);
  EXPECT_EQ(phase(), PodPhase::kFailed);
  EXPECT_EQ(Due(), "delete 0");
  EXPECT_EQ(Due(), "");
}

TEST_F(LifecycleTest, AShorterGraceWins) {
  Make(PodRestartPolicy::kAlways);
  ASSERT_EQ(Due(), "launch 0");
  lifecycle_->Launched(0, now_);
  lifecycle_->Delete(30s, now_);
  EXPECT_EQ(Due(), "terminate 0");
  lifecycle_->Delete(60s, now_);
  EXPECT_EQ(lifecycle_->wake_at(), now_.steady + 30s);
  lifecycle_->Delete(0s, now_);
  EXPECT_EQ(Due(), "kill 0");
}

TEST_F(LifecycleTest, ADeletedPodInBackOffIsNotStartedAgain) {
  Make(PodRestartPolicy::kAlways);
  RunOnce(1);
  RunOnce(1);
  lifecycle_->Delete(30s, now_);
  EXPECT_EQ(Due(), "delete 0");
  Wait(1h);
  EXPECT_EQ(Due(), "");
}

}  // namespace
}  // namespace tfjob::process
