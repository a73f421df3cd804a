#include "operator/policy/rules/permanent_failure.h"

#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum ReplicaType;
using enum RestartPolicy;

std::string FailureOf(const std::vector<TypeSpec>& types, const std::vector<objects::Pod>& pods,
                      bool dynamic = false) {
  api::TFJob job = MakeJob(types);
  job.spec.enable_dynamic_worker = dynamic;
  Snapshot snapshot;
  for (const objects::Pod& pod : pods) snapshot.pods.push_back(Share(pod));
  const auto failure = FindPermanentFailure(job, Arrange(job, job.status, snapshot));
  return failure ? failure->message : "";
}

// Checks which failures end a job, and with which message.
TEST(Failure, IsPermanentByThePolicysWord) {
  const struct {
    const char* sentence;
    std::vector<TypeSpec> types;
    std::vector<objects::Pod> pods;
    const char* message;
  } kCases[] = {
      {"Never: any failed pod",
       {{kWorker, 3}},
       {Exited("mnist-worker-1", 1), Exited("mnist-worker-2", 137)},
       "TFJob ns/mnist has failed because 2 Worker replica(s) failed."},
      {"Never: an evicted pod too, and the message says so",
       {{kPS, 1}},
       {Evicted("mnist-ps-0")},
       "TFJob ns/mnist has failed because 1 PS replica(s) failed. Pod mnist-ps-0: Evicted: the "
       "node was low on memory"},
      {"Never: not while the pod terminates",
       {{kWorker, 1}},
       {Terminating(Exited("mnist-worker-0", 1), 0)},
       ""},
      {"ExitCode: a code below 128",
       {{kWorker, 1, kExitCode}},
       {Exited("mnist-worker-0", 2)},
       "job \"mnist\" is failing because \"Worker\" replica(s) failed."},
      {"ExitCode: not a signal", {{kWorker, 1, kExitCode}}, {Exited("mnist-worker-0", 137)}, ""},
      {"OnFailure: never", {{kWorker, 1, kOnFailure}}, {Exited("mnist-worker-0", 1)}, ""},
      {"any type, even while another restarts",
       {{kPS, 1}, {kWorker, 1, kOnFailure}},
       {Exited("mnist-worker-0", 1), Exited("mnist-ps-0", 1)},
       "TFJob ns/mnist has failed because 1 PS replica(s) failed."},
      {"a pod beyond replicas does not count", {{kWorker, 1}}, {Exited("mnist-worker-7", 1)}, ""},
      {"a failed sidecar of a replica that is done does not count",
       {{kWorker, 2}},
       {WithSidecar(Exited("mnist-worker-1", 0), false)},
       ""},
  };
  for (const auto& c : kCases) EXPECT_EQ(FailureOf(c.types, c.pods), c.message) << c.sentence;
}

// With enableDynamicWorker, failures of workers are tolerated, but those of other types are not.
TEST(Failure, IsToleratedOfDynamicWorkers) {
  EXPECT_EQ(FailureOf({{kWorker, 2}}, {Exited("mnist-worker-1", 1)}, true), "");
  EXPECT_EQ(FailureOf({{kWorker, 2, kExitCode}}, {Exited("mnist-worker-1", 1)}, true), "");
  EXPECT_EQ(FailureOf({{kPS, 1}, {kWorker, 2}}, {Exited("mnist-ps-0", 1)}, true),
            "TFJob ns/mnist has failed because 1 PS replica(s) failed.");
}

}  // namespace
}  // namespace tfjob::policy
