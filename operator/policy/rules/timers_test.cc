#include <gtest/gtest.h>

#include "operator/api/conditions.h"
#include "operator/policy/rules/deadline.h"
#include "operator/policy/rules/recreation_delay.h"
#include "operator/policy/rules/ttl.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum ReplicaType;

// The deadline counts from startTime. A job without startTime or activeDeadlineSeconds has no
// deadline.
TEST(Deadline, RunsFromTheStart) {
  api::TFJob job = MakeJob({{kWorker, 1}});
  EXPECT_EQ(TimeToDeadline(job, job.status, At(0)), std::nullopt);
  job.spec.run_policy.active_deadline_seconds = 60;
  EXPECT_EQ(TimeToDeadline(job, job.status, At(0)), std::nullopt);
  job.status.start_time = At(10);
  EXPECT_EQ(TimeToDeadline(job, job.status, At(10)), Duration(60s));
  EXPECT_EQ(TimeToDeadline(job, job.status, At(69)), Duration(1s));
  EXPECT_EQ(TimeToDeadline(job, job.status, At(70)), Duration::zero());
  job.spec.run_policy.active_deadline_seconds = std::numeric_limits<int64_t>::max();
  EXPECT_GT(*TimeToDeadline(job, job.status, At(70)), Duration(24h));
  job.spec.run_policy.active_deadline_seconds = -5;
  EXPECT_LE(*TimeToDeadline(job, job.status, At(70)), Duration::zero());
}

// The TTL counts from completionTime or, if that is not set, from the final condition.
TEST(Ttl, RunsFromTheEnd) {
  api::TFJob job = MakeJob({{kWorker, 1}});
  job.spec.run_policy.ttl_seconds_after_finished = 100;
  EXPECT_EQ(TimeToLive(job, job.status, At(0)), std::nullopt);
  api::SetCondition(job.status, ConditionType::kFailed, true, "TFJobFailed", "", At(50));
  EXPECT_EQ(TimeToLive(job, job.status, At(60)), Duration(90s));
  job.status.completion_time = At(40);
  EXPECT_EQ(TimeToLive(job, job.status, At(60)), Duration(80s));
  EXPECT_LE(*TimeToLive(job, job.status, At(140)), Duration::zero());
  job.spec.run_policy.suspend = true;
  EXPECT_EQ(TimeToLive(job, job.status, At(140)), std::nullopt);
  job.spec.run_policy.suspend = false;
  job.spec.run_policy.ttl_seconds_after_finished = -1;
  EXPECT_EQ(TimeToLive(job, job.status, At(140)), std::nullopt);
  job.spec.run_policy.ttl_seconds_after_finished = std::nullopt;
  EXPECT_EQ(TimeToLive(job, job.status, At(140)), std::nullopt);
}

// The delays are 0, 1, 2, 4 … seconds, up to 5 minutes.
TEST(RestartDelay, Doubles) {
  const DecisionOptions options;
  const Duration kDelays[] = {0s, 1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(RecreationDelay(i, options), kDelays[i]) << i;
  EXPECT_EQ(RecreationDelay(std::numeric_limits<int32_t>::max(), options), Duration(300s));
}

// The delay counts from the loss of the pod. A slot that has not lost a pod does not wait.
TEST(RestartDelay, RunsFromTheLoss) {
  const DecisionOptions options;
  EXPECT_EQ(NotBefore(nullptr, options), std::nullopt);
  IndexHistory index{.uid = "u", .lost_at = Steady(10), .recreations = 3};
  EXPECT_EQ(NotBefore(&index, options), Steady(14));
  index.lost_at.reset();
  EXPECT_EQ(NotBefore(&index, options), std::nullopt);
}

}  // namespace
}  // namespace tfjob::policy
