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

// A replica is done once its container has exited with 0, regardless of its sidecars. Under Always,
// it is never done.
TEST(JudgeEnd, GoesByTheTensorflowContainer) {
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
  for (const auto& c : kCases) {
    EXPECT_EQ(JudgeEnd(c.pod, c.policy) == PodEnd::kDone, c.completed) << c.what;
  }
}

// Checks how each policy classifies each kind of failure.
TEST(JudgeEnd, FollowsThePolicy) {
  objects::Pod killed = Exited("p", 137);
  objects::Pod disrupted = Exited("p", 1);
  disrupted.conditions = {{"DisruptionTarget", "True", "EvictionByEvictionAPI", "", {}}};
  objects::Pod unknown = Exited("p", 1);
  unknown.containers.clear();
  using enum PodEnd;
  const struct {
    const char* what;
    objects::Pod pod;
    PodEnd never, on_failure, always, exit_code;
  } kCases[] = {
      {"code 1", Exited("p", 1), kFailed, kRetryable, kRetryable, kFailed},
      {"code 127", Exited("p", 127), kFailed, kRetryable, kRetryable, kFailed},
      {"code 128", Exited("p", 128), kFailed, kRetryable, kRetryable, kRetryable},
      {"code 138", Exited("p", 138), kFailed, kRetryable, kRetryable, kRetryable},
      {"killed", killed, kFailed, kRetryable, kRetryable, kRetryable},
      {"unknown code", unknown, kFailed, kRetryable, kRetryable, kRetryable},
      {"evicted", Evicted("p"), kFailed, kDisrupted, kDisrupted, kDisrupted},
      {"disrupted with code 1", disrupted, kFailed, kDisrupted, kDisrupted, kDisrupted},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(JudgeEnd(c.pod, RestartPolicy::kNever), c.never) << c.what;
    EXPECT_EQ(JudgeEnd(c.pod, RestartPolicy::kOnFailure), c.on_failure) << c.what;
    EXPECT_EQ(JudgeEnd(c.pod, RestartPolicy::kAlways), c.always) << c.what;
    EXPECT_EQ(JudgeEnd(c.pod, RestartPolicy::kExitCode), c.exit_code) << c.what;
  }
}

// The decision table of JudgeEnd. Each combination of the values below must match exactly one row.
enum Exit { kRuns = 1, kNoStatus = 2, kCode0 = 4, kCode1 = 8, kCode137 = 16 };
enum Phase { kPending = 1, kRunning = 2, kSucceeded = 4, kFailed = 8, kUnknown = 16 };
// The time when the deletion was requested, or when the condition DisruptionTarget became True,
// relative to the exit: never, more than the skew later, at most the skew later, or earlier.
enum Deletion {
  kNotDeleted = 1,
  kDeletedLater = 2,
  kDeletedAtExit = 4,
  kDeletedBefore = 8,
  kSeenEnded =
      16,  // earlier by the clocks, but an earlier version of the pod shows that it had ended
};
enum Disrupted {
  kNotDisrupted = 1,
  kNoLongerDisrupted = 2,  // the condition is False
  kDisruptedLater = 4,
  kDisruptedAtExit = 8,
  kDisruptedBefore = 16,
  kDisruptedAtUnknownTime = 32,  // the condition has no time
  kDisruptedByReason = 64,       // status.reason is Evicted, and there is no condition
};
enum Deadline { kInTime = 1, kOverdue = 2 };  // overdue: status.reason is DeadlineExceeded

constexpr int kNotExited = kRuns | kNoStatus;
constexpr int kExited = kCode0 | kCode1 | kCode137;
constexpr int kUnfinished = kPending | kRunning | kUnknown;
constexpr int kAnyPhase = kUnfinished | kSucceeded | kFailed;
constexpr int kStopped = kDeletedAtExit | kDeletedBefore;
constexpr int kEndedFirst = kDeletedLater | kSeenEnded;
constexpr int kUndisrupted = kNotDisrupted | kNoLongerDisrupted;
constexpr int kDisruptedFirst =
    kDisruptedAtExit | kDisruptedBefore | kDisruptedAtUnknownTime | kDisruptedByReason;
constexpr int kAnyDisruption = kUndisrupted | kDisruptedLater | kDisruptedFirst;
constexpr int kAnyTime = kInTime | kOverdue;

struct Row {
  const char* what;
  int exits, phases, deletions, disruptions, deadlines;  // sets of the values above
  PodEnd never, always, on_failure, exit_code;
};

using End = PodEnd;
constexpr Row kTable[] = {
    {"exited because it was being deleted", kExited, kAnyPhase, kStopped, kAnyDisruption, kAnyTime,
     End::kDeleted, End::kDeleted, End::kDeleted, End::kDeleted},
    {"is being deleted", kNotExited, kAnyPhase, kDeletedLater | kStopped, kAnyDisruption, kAnyTime,
     End::kDeleted, End::kDeleted, End::kDeleted, End::kDeleted},
    {"exited because it was disrupted", kExited, kSucceeded | kFailed, kNotDeleted | kEndedFirst,
     kDisruptedFirst, kAnyTime, End::kFailed, End::kDisrupted, End::kDisrupted, End::kDisrupted},
    {"was disrupted, exit unknown", kNotExited, kSucceeded | kFailed, kNotDeleted | kSeenEnded,
     kDisruptedLater | kDisruptedFirst, kAnyTime, End::kFailed, End::kDisrupted, End::kDisrupted,
     End::kDisrupted},
    {"exited in a disruption, but the phase does not show it yet", kExited, kUnfinished,
     kNotDeleted, kDisruptedFirst, kAnyTime, End::kNone, End::kNone, End::kNone, End::kNone},
    {"exited in a disruption, then deleted", kExited, kUnfinished, kDeletedLater, kDisruptedFirst,
     kAnyTime, End::kDeleted, End::kDeleted, End::kDeleted, End::kDeleted},
    {"is being disrupted", kNotExited, kUnfinished, kNotDeleted, kDisruptedLater | kDisruptedFirst,
     kAnyTime, End::kNone, End::kNone, End::kNone, End::kNone},
    {"done while other containers run", kCode0, kUnfinished, kNotDeleted,
     kUndisrupted | kDisruptedLater, kAnyTime, End::kDone, End::kRestartedInPlace, End::kDone,
     End::kDone},
    {"done, then deleted", kCode0, kUnfinished | kSucceeded, kEndedFirst,
     kUndisrupted | kDisruptedLater, kAnyTime, End::kDone, End::kDeleted, End::kDone, End::kDone},
    {"done", kCode0, kSucceeded, kNotDeleted, kUndisrupted | kDisruptedLater, kAnyTime, End::kDone,
     End::kSucceeded, End::kDone, End::kDone},
    {"done, but another container failed", kCode0, kFailed, kNotDeleted | kEndedFirst,
     kUndisrupted | kDisruptedLater, kInTime, End::kDone, End::kRetryable, End::kDone, End::kDone},
    {"stopped by its own deadline", kCode0, kFailed, kNotDeleted | kEndedFirst,
     kUndisrupted | kDisruptedLater, kOverdue, End::kFailed, End::kRetryable, End::kRetryable,
     End::kFailed},
    {"failed", kCode1, kFailed, kNotDeleted | kEndedFirst, kUndisrupted | kDisruptedLater, kAnyTime,
     End::kFailed, End::kRetryable, End::kRetryable, End::kFailed},
    {"killed", kCode137, kFailed, kNotDeleted | kEndedFirst, kUndisrupted | kDisruptedLater,
     kAnyTime, End::kFailed, End::kRetryable, End::kRetryable, End::kRetryable},
    {"failed, exit unknown", kNotExited, kFailed, kNotDeleted | kSeenEnded, kUndisrupted, kAnyTime,
     End::kFailed, End::kRetryable, End::kRetryable, End::kRetryable},
    {"succeeded, exit unknown", kNotExited, kSucceeded, kNotDeleted, kUndisrupted, kAnyTime,
     End::kSucceeded, End::kSucceeded, End::kSucceeded, End::kSucceeded},
    {"succeeded, exit unknown, then deleted", kNotExited, kSucceeded, kSeenEnded, kUndisrupted,
     kAnyTime, End::kDeleted, End::kDeleted, End::kDeleted, End::kDeleted},
    {"succeeded with a code other than 0", kCode1 | kCode137, kSucceeded, kNotDeleted,
     kUndisrupted | kDisruptedLater, kAnyTime, End::kSucceeded, End::kSucceeded, End::kSucceeded,
     End::kSucceeded},
    {"container failed while others run", kCode1 | kCode137, kUnfinished, kNotDeleted,
     kUndisrupted | kDisruptedLater, kAnyTime, End::kNone, End::kRestartedInPlace,
     End::kRestartedInPlace, End::kNone},
    {"container failed while others ran, then deleted", kCode1 | kCode137, kUnfinished | kSucceeded,
     kEndedFirst, kUndisrupted | kDisruptedLater, kAnyTime, End::kDeleted, End::kDeleted,
     End::kDeleted, End::kDeleted},
    {"has not ended", kNotExited, kUnfinished, kNotDeleted, kUndisrupted, kAnyTime, End::kNone,
     End::kNone, End::kNone, End::kNone},
};

PodPhase PhaseOf(int phase) {
  switch (phase) {
    case kPending:
      return PodPhase::kPending;
    case kRunning:
      return PodPhase::kRunning;
    case kSucceeded:
      return PodPhase::kSucceeded;
    case kFailed:
      return PodPhase::kFailed;
    default:
      return PodPhase::kUnknown;
  }
}

constexpr int64_t kExitAt = 100;

// Returns a pod whose container, if it has exited, exited at kExitAt.
objects::Pod PodWith(int exit, int phase, int deletion, int disruption, int deadline) {
  objects::Pod pod = MakePod("p", PodPhase::kRunning);
  pod.phase = PhaseOf(phase);
  if (exit == kNoStatus) pod.containers.clear();
  if (exit & kExited) {
    objects::ContainerStatus& container = pod.containers[0];
    container.state = objects::ContainerStatus::State::kTerminated;
    container.exit_code = exit == kCode0 ? 0 : exit == kCode1 ? 1 : 137;
    container.finished_at = At(kExitAt);
  }
  // Deleted 4 s after the exit, which is more than the skew of 3 s.
  if (deletion == kDeletedLater) pod = Terminating(pod, kExitAt + 4);
  if (deletion == kDeletedAtExit) pod = Terminating(pod, kExitAt + 3);
  if (deletion == kDeletedBefore) pod = Terminating(pod, kExitAt - 10);
  if (deletion == kSeenEnded) {
    pod = Terminating(pod, kExitAt - 10);
    pod.ended_before_deletion = true;
  }
  const auto set_condition = [&pod](const char* status, Time since) {
    pod.conditions = {{"DisruptionTarget", status, "TerminationByKubelet", "", since}};
  };
  if (disruption == kNoLongerDisrupted) set_condition("False", At(kExitAt - 10));
  if (disruption == kDisruptedLater) set_condition("True", At(kExitAt + 4));
  if (disruption == kDisruptedAtExit) set_condition("True", At(kExitAt + 3));
  if (disruption == kDisruptedBefore) set_condition("True", At(kExitAt - 10));
  if (disruption == kDisruptedAtUnknownTime) set_condition("True", Time());
  if (disruption == kDisruptedByReason) pod.reason = "Evicted";
  if (deadline == kOverdue) pod.reason = "DeadlineExceeded";
  return pod;
}

const Row* RowFor(int exit, int phase, int deletion, int disruption, int deadline) {
  const Row* found = nullptr;
  for (const Row& row : kTable) {
    const bool matches = (row.exits & exit) && (row.phases & phase) && (row.deletions & deletion) &&
                         (row.disruptions & disruption) && (row.deadlines & deadline);
    if (!matches) continue;
    EXPECT_EQ(found, nullptr) << row.what << " or " << found->what;
    found = &row;
  }
  return found;
}

void ExpectRow(int exit, int phase, int deletion, int disruption, int deadline) {
  if (deadline == kOverdue && disruption == kDisruptedByReason) return;  // one reason per pod
  if (deletion == kSeenEnded && (phase & kUnfinished)) return;  // a pod that has ended stays ended
  SCOPED_TRACE(StrCat("exit ", exit, ", phase ", phase, ", deletion ", deletion, ", disruption ",
                      disruption, ", deadline ", deadline));
  const Row* row = RowFor(exit, phase, deletion, disruption, deadline);
  ASSERT_NE(row, nullptr);
  const objects::Pod pod = PodWith(exit, phase, deletion, disruption, deadline);
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kNever), row->never) << row->what;
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kAlways), row->always) << row->what;
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kOnFailure), row->on_failure) << row->what;
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kExitCode), row->exit_code) << row->what;
}

// Checks every combination of phase, reason, condition, deletion, exit code and time under every
// policy.
TEST(JudgeEnd, FollowsTheTable) {
  for (int exit = 1; exit <= kCode137; exit *= 2) {
    for (int phase = 1; phase <= kUnknown; phase *= 2) {
      for (int deletion = 1; deletion <= kSeenEnded; deletion *= 2) {
        for (int disruption = 1; disruption <= kDisruptedByReason; disruption *= 2) {
          for (const int deadline : {kInTime, kOverdue}) {
            ExpectRow(exit, phase, deletion, disruption, deadline);
          }
        }
      }
    }
  }
}

// If the node of an evicted pod is drained later, the time of the drain has nothing to do with the
// eviction.
TEST(JudgeEnd, DoesNotTakeADrainForTheEviction) {
  objects::Pod pod = Exited("p", 0);
  pod.phase = PodPhase::kFailed;
  pod.reason = "Evicted";
  pod.conditions = {{"DisruptionTarget", "True", "EvictionByEvictionAPI", "", At(60)}};
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kOnFailure), PodEnd::kDisrupted);
  pod.conditions[0].reason = "TerminationByKubelet";
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kOnFailure), PodEnd::kDone);
}

// An exit without a time counts as a response to the deletion, because the container may have been
// stopped.
TEST(JudgeEnd, TakesAnExitWithoutATimeForAnAnswer) {
  objects::Pod pod = Terminating(Exited("p", 0), 5);
  pod.containers[0].finished_at = Time();
  EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kOnFailure), PodEnd::kDeleted);
}

// The grace period comes from the pod's template, and an API server accepts any number of seconds.
// If the period is impossible, the exit counts as a response to the deletion.
TEST(JudgeEnd, TakesTheDeletionForTheCauseIfItsGracePeriodIsImpossible) {
  constexpr int64_t kLongest = INT64_MAX / 1'000'000'000;
  EXPECT_EQ(JudgeEnd(Terminating(Exited("p", 0), 5, kLongest), RestartPolicy::kNever),
            PodEnd::kDone);
  objects::Pod pod = Terminating(Exited("p", 0), 5);
  for (const int64_t grace :
       {kLongest + 1, int64_t{10'000'000'000'000}, INT64_MAX, int64_t{-100}, INT64_MIN}) {
    pod.metadata.deletion_grace_period_seconds = grace;
    EXPECT_EQ(JudgeEnd(pod, RestartPolicy::kNever), PodEnd::kDeleted) << grace;
  }
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
  pod.conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", "", At(60)}};
  EXPECT_EQ(Disruption(pod), std::nullopt) << "the program had ended a minute before";
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
