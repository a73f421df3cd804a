#include "operator/policy/facts/history.h"

#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum ReplicaType;
using enum RestartPolicy;

const Slot kWorker0{kWorker, 0};

objects::Pod Incarnation(int i, PodPhase phase) {
  objects::Pod pod = MakePod("mnist-worker-0", phase);
  pod.metadata.uid = StrCat("uid-", i);
  return pod;
}

class HistoryTest : public ::testing::Test {
 protected:
  Scene scene_{StartedJob({{kWorker, 1, kOnFailure}})};

  // Returns the history of worker 0 after a reconcile.
  IndexHistory See(int64_t at) {
    scene_.snapshot.steady_now = Steady(at);
    Remember(scene_.job, scene_.snapshot, scene_.options, scene_.history);
    const IndexHistory* index = scene_.history.Find(kWorker0);
    return index == nullptr ? IndexHistory() : *index;
  }
};

// The first pod does not count as a recreation. Every later pod does.
TEST_F(HistoryTest, CountsRecreations) {
  EXPECT_EQ(See(0), IndexHistory());
  scene_.Put(Incarnation(1, PodPhase::kPending));
  EXPECT_EQ(See(1), (IndexHistory{.uid = "uid-1", .alive = true}));
  scene_.Put(Incarnation(1, PodPhase::kFailed));
  EXPECT_EQ(See(2), (IndexHistory{.uid = "uid-1", .lost_at = Steady(2)}));
  scene_.Remove("mnist-worker-0");
  EXPECT_EQ(See(3), (IndexHistory{.uid = "uid-1", .lost_at = Steady(2)}));
  scene_.Put(Incarnation(2, PodPhase::kPending));
  EXPECT_EQ(See(4), (IndexHistory{.uid = "uid-2", .alive = true, .recreations = 1}));
  // A pod that failed before any reconcile saw it alive counts, too.
  scene_.Put(Incarnation(3, PodPhase::kFailed));
  EXPECT_EQ(See(5), (IndexHistory{.uid = "uid-3", .lost_at = Steady(5), .recreations = 2}));
}

// A pod that has run for ten minutes resets the recreation count, whether a reconcile sees it while
// it is still running or after it has ended.
TEST_F(HistoryTest, ForgetsAfterTenMinutesOfRunning) {
  for (const PodPhase phase : {PodPhase::kRunning, PodPhase::kFailed}) {
    scene_.Put(Incarnation(1, PodPhase::kRunning));
    See(0);
    scene_.history.indexes[kWorker][0].recreations = 5;
    EXPECT_EQ(See(599).recreations, 5);
    objects::Pod pod = Incarnation(1, phase);
    pod.containers[0].finished_at = At(600);
    scene_.Put(pod);
    EXPECT_EQ(See(601).recreations, 0);
  }
}

// Setting the wall clock neither ends nor extends a run. When the container is restarted in place,
// a new run starts.
TEST_F(HistoryTest, MeasuresRunsOnTheSteadyClock) {
  objects::Pod pod = Incarnation(1, PodPhase::kRunning);
  scene_.Put(pod);
  See(0);
  scene_.history.indexes[kWorker][0].recreations = 5;
  pod.containers[0].started_at = At(300);
  scene_.Put(pod);
  EXPECT_EQ(See(300).recreations, 5);
  EXPECT_EQ(See(899).recreations, 5);
  objects::Pod failed = Incarnation(1, PodPhase::kFailed);
  failed.containers[0].started_at = At(300);
  failed.containers[0].finished_at = At(300) + 5h;  // the clock was set between these times
  scene_.Put(failed);
  EXPECT_EQ(See(899).recreations, 5);
  scene_.Put(pod);
  EXPECT_EQ(See(900).recreations, 0);
}

// The causes of sent events are forgotten when the objects that they refer to disappear. For each
// container, only the cause of the last exit is kept.
TEST_F(HistoryTest, ForgetsSettledCauses) {
  scene_.Put(RestartedTimes(Incarnation(1, PodPhase::kRunning), 3));
  See(0);
  scene_.history.blocked_pods["mnist-worker-5"] = {"nobody", "stranger", Steady(0)};
  const std::set<std::string> standing = {"annotation/x",
                                          "blocked/mnist-worker-5/stranger",
                                          "condition/uid-1/Unschedulable",
                                          "container/uid-1/tensorflow/CrashLoopBackOff",
                                          "container/uid-1/tensorflow/Error/3",
                                          "create-failed/FailedCreatePod/quota",
                                          "restart/uid-1"};
  scene_.history.reported = standing;
  for (const char* settled :
       {"blocked/mnist-worker-4/another", "condition/uid-0/Unschedulable",
        "container/uid-0/tensorflow/Error/3", "container/uid-1/tensorflow/Error/1",
        "container/uid-1/tensorflow/Error/2", "delete-failed/uid-0/denied", "exit/uid-0",
        "lost-node/uid-0", "restart/uid-0"}) {
    scene_.history.reported.insert(settled);
  }
  See(1);
  EXPECT_EQ(scene_.history.reported, standing);
  // The history of the slot still contains the pod that has vanished.
  scene_.Remove("mnist-worker-0");
  See(2);
  EXPECT_TRUE(scene_.history.reported.contains("restart/uid-1"));
  scene_.Put(Incarnation(2, PodPhase::kPending));
  scene_.history.blocked_pods.clear();
  See(3);
  EXPECT_EQ(scene_.history.reported,
            (std::set<std::string>{"annotation/x", "create-failed/FailedCreatePod/quota"}));
}

// A pod counts as vanished if it was alive at one reconcile and gone at the next, but not if a
// reconcile saw it terminating or ended.
TEST_F(HistoryTest, SeesPodsVanish) {
  scene_.Put(Incarnation(1, PodPhase::kRunning));
  See(0);
  scene_.Remove("mnist-worker-0");
  EXPECT_TRUE(See(1).vanished);
  EXPECT_TRUE(See(2).vanished);
  EXPECT_EQ(See(2).lost_at, Steady(1));
  scene_.Put(Incarnation(2, PodPhase::kPending));
  EXPECT_FALSE(See(3).vanished);
  scene_.Put(Terminating(Incarnation(2, PodPhase::kRunning), 4));
  EXPECT_FALSE(See(4).vanished);
  scene_.Remove("mnist-worker-0");
  EXPECT_FALSE(See(5).vanished);
}

// Indexes that the spec no longer has are dropped. If the job is suspended, all indexes are
// dropped.
TEST_F(HistoryTest, ForgetsWhatIsNotWanted) {
  scene_.job.spec.replicas[kWorker].replicas = 2;
  scene_.Put(MakePod("mnist-worker-1", PodPhase::kRunning));
  See(0);
  EXPECT_NE(scene_.history.Find({kWorker, 1}), nullptr);
  scene_.job.spec.replicas[kWorker].replicas = 1;
  See(1);
  EXPECT_EQ(scene_.history.Find({kWorker, 1}), nullptr);
  scene_.Put(Incarnation(1, PodPhase::kRunning));
  See(2);
  scene_.job.spec.run_policy.suspend = true;
  EXPECT_EQ(See(3), IndexHistory());
}

}  // namespace
}  // namespace tfjob::policy
