#include "operator/metrics/transitions.h"

#include <gtest/gtest.h>

#include "operator/api/conditions.h"
#include "operator/api/reasons.h"

namespace tfjob::metrics {
namespace {

using api::ConditionType;
using api::ReplicaType;

Time At(int64_t seconds) {
  return Time(std::chrono::seconds(1'000'000 + seconds));
}

objects::ObjectMeta Job() {
  objects::ObjectMeta job;
  job.creation_timestamp = At(0);
  return job;
}

void Set(api::TFJobStatus& status, ConditionType type, int64_t at, bool value = true) {
  api::SetCondition(status, type, value, "Reason", "", At(at));
}

api::TFJobStatus Running() {
  api::TFJobStatus status;
  status.start_time = At(1);
  Set(status, ConditionType::kCreated, 1);
  Set(status, ConditionType::kRunning, 10);
  return status;
}

TEST(Transitions, TheFirstStatusIsACreation) {
  api::TFJobStatus created;
  Set(created, ConditionType::kCreated, 1);
  EXPECT_EQ(Compare(Job(), {}, created), (Transitions{.created = true}));
  EXPECT_EQ(Compare(Job(), created, created), Transitions());
}

TEST(Transitions, PendingEndsWithTheFirstRunning) {
  api::TFJobStatus created;
  Set(created, ConditionType::kCreated, 1);
  EXPECT_EQ(Compare(Job(), created, Running()), (Transitions{.pending = 10s}));
  // The time from a restart until the job is Running again must not count as pending.
  api::TFJobStatus restarting = Running();
  Set(restarting, ConditionType::kRestarting, 20);
  EXPECT_EQ(Compare(Job(), restarting, Running()).pending, std::nullopt);
}

TEST(Transitions, AResumedJobIsPendingFromItsResumption) {
  api::TFJobStatus resumed;
  Set(resumed, ConditionType::kCreated, 1);
  Set(resumed, ConditionType::kSuspended, 100, false);
  resumed.start_time = At(100);
  api::TFJobStatus running = resumed;
  Set(running, ConditionType::kRunning, 103);
  EXPECT_EQ(Compare(Job(), resumed, running).pending, 3s);
}

TEST(Transitions, EveryReplacedPodIsAFailureAndEveryStatusWithOneARestart) {
  api::TFJobStatus once = Running();
  Set(once, ConditionType::kRestarting, 20);
  once.replica_statuses[ReplicaType::kWorker].replacing = {"a", "b"};
  EXPECT_EQ(Compare(Job(), Running(), once), (Transitions{.restarted = true, .failed_pods = 2}));
  api::TFJobStatus again = once;
  again.replica_statuses[ReplicaType::kWorker].replacing = {"b", "c"};
  EXPECT_EQ(Compare(Job(), once, again), (Transitions{.restarted = true, .failed_pods = 1}));
}

TEST(Transitions, AnEndHasADuration) {
  api::TFJobStatus failed = Running();
  failed.replica_statuses[ReplicaType::kPS].failed = 1;
  failed.completion_time = At(61);
  Set(failed, ConditionType::kFailed, 61);
  EXPECT_EQ(Compare(Job(), Running(), failed),
            (Transitions{.failed = true, .failed_pods = 1, .running = 60s}));
  EXPECT_EQ(Compare(Job(), failed, failed), Transitions());
  api::TFJobStatus succeeded = Running();
  succeeded.completion_time = At(5);
  Set(succeeded, ConditionType::kSucceeded, 5);
  EXPECT_TRUE(Compare(Job(), Running(), succeeded).succeeded);
}

}  // namespace
}  // namespace tfjob::metrics
