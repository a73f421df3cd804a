// Tests which replicas must complete for the job to succeed.
// Longer than the rule: a test that is a table of cases exceeds the size limit for functions.
#include "operator/policy/rules/success.h"

#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum ReplicaType;

struct Case {
  const char* sentence;
  std::vector<TypeSpec> types;
  std::vector<objects::Pod> pods;
  bool all_workers = false;
  bool succeeded = false;
};

bool Succeeded(const Case& c) {
  api::TFJob job = MakeJob(c.types);
  if (c.all_workers) job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  Snapshot snapshot;
  for (const objects::Pod& pod : c.pods) snapshot.pods.push_back(Share(pod));
  return HasSucceeded(job, Arrange(job, job.status, snapshot));
}

objects::Pod Running(const char* name) {
  return MakePod(name, PodPhase::kRunning);
}

// Checks in which cases the chief, worker 0, all workers or all replicas decide whether the job has
// succeeded.
TEST(Success, FollowsTheRule) {
  objects::Pod silent = MakePod("mnist-worker-0", PodPhase::kSucceeded);
  silent.containers.clear();
  const Case kCases[] = {
      {"the chief decides alone",
       {{kChief}, {kWorker, 2}},
       {Exited("mnist-chief-0", 0)},
       false,
       true},
      {"the master decides alone",
       {{kMaster}, {kWorker, 2}},
       {Exited("mnist-master-0", 0)},
       false,
       true},
      {"workers do not end a job with a chief",
       {{kChief}, {kWorker, 1}},
       {Running("mnist-chief-0"), Exited("mnist-worker-0", 0)},
       false,
       false},
      {"several chiefs must all be done",
       {{kChief, 2}},
       {Exited("mnist-chief-0", 0)},
       false,
       false},
      {"a chief with 0 replicas is absent",
       {{kChief, 0}, {kWorker, 2}},
       {Exited("mnist-worker-0", 0), Running("mnist-worker-1")},
       false,
       true},
      {"worker 0 decides for all workers",
       {{kWorker, 3}},
       {Exited("mnist-worker-0", 0), Running("mnist-worker-1")},
       false,
       true},
      {"another worker does not", {{kWorker, 2}}, {Exited("mnist-worker-1", 0)}, false, false},
      {"under AllWorkers worker 0 does not",
       {{kWorker, 2}},
       {Exited("mnist-worker-0", 0), Running("mnist-worker-1")},
       true,
       false},
      {"under AllWorkers all do",
       {{kWorker, 2}},
       {Exited("mnist-worker-0", 0), Exited("mnist-worker-1", 0)},
       true,
       true},
      {"AllWorkers says nothing where a chief decides",
       {{kChief}, {kWorker, 2}},
       {Exited("mnist-chief-0", 0)},
       true,
       true},
      {"a phase Succeeded without a code is not worker 0's word",
       {{kWorker, 2}},
       {silent},
       false,
       false},
      {"but counts among all workers", {{kWorker, 1}}, {silent}, false, true},
      {"sidecars do not hold it back",
       {{kWorker, 1}},
       {WithSidecar(Exited("mnist-worker-0", 0), true)},
       false,
       true},
      {"servers alone end when all are done",
       {{kPS, 2}},
       {Exited("mnist-ps-0", 0), Exited("mnist-ps-1", 0)},
       false,
       true},
      {"servers alone do not end with the first",
       {{kPS, 2}},
       {Exited("mnist-ps-0", 0)},
       false,
       false},
      {"without any replica nothing succeeds", {{kWorker, 0}, {kPS, 0}}, {}, false, false},
      {"0 workers do not end servers",
       {{kWorker, 0}, {kPS, 1}},
       {Running("mnist-ps-0")},
       false,
       false},
  };
  for (const Case& c : kCases) EXPECT_EQ(Succeeded(c), c.succeeded) << c.sentence;
}

// An index that is recorded as completed does not need a pod.
TEST(Success, RemembersCompletedIndexes) {
  api::TFJob job = MakeJob({{kWorker, 3}});
  job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  job.status.replica_statuses[kWorker].completed_indexes = "0-2";
  EXPECT_TRUE(HasSucceeded(job, Arrange(job, job.status, Snapshot())));
  job.status.replica_statuses[kWorker].completed_indexes = "0,2";
  EXPECT_FALSE(HasSucceeded(job, Arrange(job, job.status, Snapshot())));
}

}  // namespace
}  // namespace tfjob::policy
