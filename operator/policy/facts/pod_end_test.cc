#include "operator/policy/facts/pod_end.h"

#include <gtest/gtest.h>

#include "operator/policy/facts/slot.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;

// A name belongs to a slot only if it is exactly the name that the operator generates.
TEST(SlotOfName, ReadsOurNamesOnly) {
  EXPECT_EQ(SlotOfName("mnist", "mnist-worker-0"), (Slot{ReplicaType::kWorker, 0}));
  EXPECT_EQ(SlotOfName("mnist", "mnist-ps-12"), (Slot{ReplicaType::kPS, 12}));
  EXPECT_EQ(SlotOfName("a-worker", "a-worker-worker-3"), (Slot{ReplicaType::kWorker, 3}));
  for (const char* name :
       {"mnist", "mnist-", "mnist-worker", "mnist-worker-", "mnist-worker-x", "mnist-worker-01",
        "mnist-worker--1", "mnist-worker-99999999999", "mnist-Worker-0", "mnist-boss-0",
        "mnistworker-0", "other-worker-0", "mnist-worker-0-x", ""}) {
    EXPECT_EQ(SlotOfName("mnist", name), std::nullopt) << name;
  }
}

// A replica is done once its container has exited with 0, whatever its sidecars do. Under Always,
// it is never done.
TEST(IsCompleted, GoesByTheTensorflowContainer) {
  const struct {
    const char* what;
    objects::Pod pod;
    RestartPolicy policy;
    bool completed;
  } kCases[] = {
      {"ended with 0", Exited("p", 0), RestartPolicy::kNever, true},
      {"ended with 0, restarts on failure", Exited("p", 0), RestartPolicy::kOnFailure, true},
      {"ended with 0, judged by code", Exited("p", 0), RestartPolicy::kExitCode, true},
      {"ended with 0, always restarts", Exited("p", 0), RestartPolicy::kAlways, false},
      {"ended with 1", Exited("p", 1), RestartPolicy::kNever, false},
      {"runs", MakePod("p", PodPhase::kRunning), RestartPolicy::kNever, false},
      {"sidecar runs on", WithSidecar(Exited("p", 0), true), RestartPolicy::kNever, true},
      {"sidecar failed", WithSidecar(Exited("p", 0), false), RestartPolicy::kNever, true},
      {"no status at all", Evicted("p"), RestartPolicy::kNever, false},
      {"ended before its deletion", Terminating(Exited("p", 0), 5), RestartPolicy::kNever, true},
      {"stopped by its deletion", Terminating(Exited("p", 0), 1), RestartPolicy::kNever, false},
  };
  for (const auto& c : kCases) EXPECT_EQ(IsCompleted(c.pod, c.policy), c.completed) << c.what;
}

// A pod counts as disrupted if it has one of the cluster's reasons or the condition
// DisruptionTarget, but not if its program ended by itself.
TEST(Disruption, NamesReasonAndMessage) {
  EXPECT_EQ(Disruption(Evicted("p")), "Evicted: the node was low on memory");
  EXPECT_EQ(Disruption(Exited("p", 1)), std::nullopt);
  for (const char* reason : {"NodeLost", "Preempting", "Terminated", "NodeShutdown", "OutOfcpu"}) {
    objects::Pod pod = Exited("p", 143);
    pod.reason = reason;
    EXPECT_EQ(Disruption(pod), reason);
  }
  objects::Pod pod = Exited("p", 143);
  pod.reason = "DeadlineExceeded";
  EXPECT_EQ(Disruption(pod), std::nullopt);
  pod.conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", "for a better one", {}}};
  EXPECT_EQ(Disruption(pod), "PreemptionByScheduler: for a better one");
  pod.conditions[0].status = "False";
  EXPECT_EQ(Disruption(pod), std::nullopt);
}

// Checks how each policy classifies each kind of failure.
TEST(JudgeFailure, FollowsThePolicy) {
  objects::Pod killed = Exited("p", 137);
  objects::Pod disrupted = Exited("p", 1);
  disrupted.conditions = {{"DisruptionTarget", "True", "EvictionByEvictionAPI", "", {}}};
  objects::Pod unknown = Exited("p", 1);
  unknown.containers.clear();
  using enum FailureKind;
  const struct {
    const char* what;
    objects::Pod pod;
    FailureKind never, on_failure, always, exit_code;
  } kCases[] = {
      {"code 1", Exited("p", 1), kPermanent, kRetryable, kRetryable, kPermanent},
      {"code 127", Exited("p", 127), kPermanent, kRetryable, kRetryable, kPermanent},
      {"code 128", Exited("p", 128), kPermanent, kRetryable, kRetryable, kRetryable},
      {"code 138", Exited("p", 138), kPermanent, kRetryable, kRetryable, kRetryable},
      {"killed", killed, kPermanent, kRetryable, kRetryable, kRetryable},
      {"unknown code", unknown, kPermanent, kRetryable, kRetryable, kRetryable},
      {"evicted", Evicted("p"), kPermanent, kDisrupted, kDisrupted, kDisrupted},
      {"disrupted with code 1", disrupted, kPermanent, kDisrupted, kDisrupted, kDisrupted},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(JudgeFailure(c.pod, RestartPolicy::kNever), c.never) << c.what;
    EXPECT_EQ(JudgeFailure(c.pod, RestartPolicy::kOnFailure), c.on_failure) << c.what;
    EXPECT_EQ(JudgeFailure(c.pod, RestartPolicy::kAlways), c.always) << c.what;
    EXPECT_EQ(JudgeFailure(c.pod, RestartPolicy::kExitCode), c.exit_code) << c.what;
  }
}

// An attempt label that is missing or invalid means attempt 0.
TEST(AttemptOf, ReadsTheLabel) {
  EXPECT_EQ(AttemptOf(MakePod("p", PodPhase::kRunning)), 0);
  EXPECT_EQ(AttemptOf(WithAttempt(MakePod("p", PodPhase::kRunning), 3)), 3);
  for (const char* text : {"", "x", "3x", "-1", "99999999999"}) {
    objects::Pod pod = MakePod("p", PodPhase::kRunning);
    pod.metadata.labels.Set("tfjob.dev/attempt", text);
    EXPECT_EQ(AttemptOf(pod), 0) << text;
  }
}

}  // namespace
}  // namespace tfjob::policy
