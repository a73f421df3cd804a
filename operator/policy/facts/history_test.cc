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
    Remember(scene_.job, scene_.snapshot, At(at), scene_.options, scene_.history);
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
  EXPECT_EQ(See(2), (IndexHistory{.uid = "uid-1", .lost_at = At(2)}));
  scene_.Remove("mnist-worker-0");
  EXPECT_EQ(See(3), (IndexHistory{.uid = "uid-1", .lost_at = At(2)}));
  scene_.Put(Incarnation(2, PodPhase::kPending));
  EXPECT_EQ(See(4), (IndexHistory{.uid = "uid-2", .alive = true, .recreations = 1}));
  // A pod that failed before any reconcile saw it alive also counts.
  scene_.Put(Incarnation(3, PodPhase::kFailed));
  EXPECT_EQ(See(5), (IndexHistory{.uid = "uid-3", .lost_at = At(5), .recreations = 2}));
}

// A pod that has run for ten minutes resets the recreation count, whether a reconcile sees it while
// it still runs or after it has ended.
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

// A pod counts as vanished if it was alive at one reconcile and gone at the next, but not if a
// reconcile saw it terminating or ended.
TEST_F(HistoryTest, SeesPodsVanish) {
  scene_.Put(Incarnation(1, PodPhase::kRunning));
  See(0);
  scene_.Remove("mnist-worker-0");
  EXPECT_TRUE(See(1).vanished);
  EXPECT_TRUE(See(2).vanished);
  EXPECT_EQ(See(2).lost_at, At(1));
  scene_.Put(Incarnation(2, PodPhase::kPending));
  EXPECT_FALSE(See(3).vanished);
  scene_.Put(Terminating(Incarnation(2, PodPhase::kRunning), 4));
  EXPECT_FALSE(See(4).vanished);
  scene_.Remove("mnist-worker-0");
  EXPECT_FALSE(See(5).vanished);
}

// Indexes that the spec no longer has are dropped, and all indexes if the job is suspended.
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
