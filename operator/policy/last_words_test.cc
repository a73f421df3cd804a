#include "operator/policy/last_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Exited;
using ::testing::HasSubstr;
using testing::MakePod;
using testing::Scene;
using testing::StartedJob;
using enum api::ReplicaType;
using enum api::RestartPolicy;
using State = objects::ContainerStatus::State;

constexpr char kWords[] = "training.yaml: strategy: unknown strategy \"sinc\"";

objects::Pod Saying(objects::Pod pod, const std::string& message) {
  pod.containers[0].message = message;
  return pod;
}

std::vector<std::string> Messages(const Verdict& verdict, const std::string& reason) {
  std::vector<std::string> messages;
  for (const JobEvent& event : verdict.events) {
    if (event.reason == reason) messages.push_back(event.message);
  }
  return messages;
}

TEST(LastWords, AreInTheEventAndInTheConditionOfAFailedJob) {
  Scene scene(StartedJob({{kPS}, {kWorker, 2}}));
  scene.Put(MakePod("mnist-ps-0", objects::PodPhase::kRunning));
  scene.Put(MakePod("mnist-worker-0", objects::PodPhase::kRunning));
  scene.Put(Saying(Exited("mnist-worker-1", 2), StrCat("reading\n", kWords, "\x1b[31m\n")));
  const Verdict verdict = scene.Reconcile(1);
  const std::string words = StrCat(kWords, " [31m");
  EXPECT_THAT(Messages(verdict, "ExitedWithCode"),
              Contains(StrCat("Pod: ns.mnist-worker-1 exited with code 2: ", words)));
  const api::Condition& last = verdict.status.conditions.back();
  EXPECT_EQ(last.type, api::ConditionType::kFailed);
  EXPECT_TRUE(last.message.ends_with(StrCat(" Pod mnist-worker-1: ", words))) << last.message;
  EXPECT_THAT(Messages(verdict, last.reason), Contains(last.message));
}

TEST(LastWords, AreInTheConditionOfARestart) {
  Scene scene(StartedJob({{kWorker, 2, kExitCode}}));
  scene.Put(MakePod("mnist-worker-0", objects::PodPhase::kRunning));
  scene.Put(Saying(Exited("mnist-worker-1", 138), "the parameter server is gone"));
  const Verdict verdict = scene.Reconcile(1);
  const api::Condition& last = verdict.status.conditions.back();
  EXPECT_EQ(last.type, api::ConditionType::kRestarting);
  EXPECT_THAT(last.message, HasSubstr(" Pod mnist-worker-1: the parameter server is gone"));
}

TEST(LastWords, OfACrashLoopAreThoseOfTheLastRun) {
  Scene scene(StartedJob({{kWorker, 1, kOnFailure}}));
  objects::Pod pod = MakePod("mnist-worker-0", objects::PodPhase::kRunning);
  objects::ContainerStatus& container = pod.containers[0];
  container.state = State::kWaiting;
  container.reason = "CrashLoopBackOff";
  container.message = "back-off 10s restarting failed container=tensorflow";
  container.last_exit_code = 2;
  container.last_message = kWords;
  scene.Put(pod);
  EXPECT_THAT(Messages(scene.Reconcile(1), "CrashLoopBackOff"),
              Contains(StrCat("Error pod mnist-worker-0 container tensorflow waiting message: ",
                              container.message, "; it last said: ", kWords)));
}

TEST(LastWords, OfThePodAreThoseOfItsMainContainerOrElseOfAnother) {
  objects::Pod pod = Exited("mnist-worker-0", 1);
  EXPECT_EQ(LastWords(pod), "");
  objects::ContainerStatus init;
  init.name = "fetch";
  init.init = true;
  init.state = State::kTerminated;
  init.exit_code = 3;
  init.message = "no such bucket";
  pod.containers.insert(pod.containers.begin(), init);
  EXPECT_EQ(LastWords(pod), "the container fetch exited with code 3: no such bucket");
  pod.containers[1].message = "mine";
  EXPECT_EQ(LastWords(pod), "mine");
  pod.containers[1].exit_code = 0;  // words before a success do not explain a failure
  EXPECT_EQ(LastWords(pod), "the container fetch exited with code 3: no such bucket");
}

// The chief has ended the job, although its group had lost a worker.
TEST(Losses, AreAnEventWhenTheJobHasEnded) {
  Scene scene(StartedJob({{kChief}, {kWorker, 2}}));
  scene.Put(Saying(Exited("mnist-chief-0", 0),
                   "lost tasks: worker 1 (h:1) was lost at step 120: closed; 2 tasks continue"));
  scene.Put(MakePod("mnist-worker-0", objects::PodPhase::kRunning));
  scene.Put(MakePod("mnist-worker-1", objects::PodPhase::kRunning));
  const Verdict verdict = scene.Reconcile(1);
  EXPECT_EQ(verdict.status.conditions.back().type, api::ConditionType::kSucceeded);
  EXPECT_THAT(Messages(verdict, "WorkerLost"),
              ElementsAre("Pod: ns.mnist-chief-0 reports: worker 1 (h:1) was lost at step 120: "
                          "closed; 2 tasks continue"));
}

TEST(Losses, AreOnlyThoseThatATaskHasReportedAtItsEnd) {
  EXPECT_EQ(LossesOf(Saying(Exited("mnist-chief-0", 0), "lost tasks: worker 1\x1b[31m")),
            "worker 1 [31m");
  EXPECT_EQ(LossesOf(Exited("mnist-chief-0", 0)), "");
  EXPECT_EQ(LossesOf(Saying(Exited("mnist-chief-0", 0), "worker 1 was lost")), "");
  EXPECT_EQ(LossesOf(Saying(Exited("mnist-chief-0", 1), "lost tasks: worker 1")), "");
  EXPECT_EQ(LossesOf(MakePod("mnist-chief-0", objects::PodPhase::kRunning)), "");
}

}  // namespace
}  // namespace tfjob::policy
