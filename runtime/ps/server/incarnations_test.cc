#include "runtime/ps/server/incarnations.h"

#include <gtest/gtest.h>

#include <limits>

namespace tfjob::ps {
namespace {

const protocol::Worker kTask = {"worker", 1};

TEST(Incarnations, CountsTheProcessesOfATaskAndKeepsTheNumberOfEach) {
  Incarnations known;
  EXPECT_EQ(known.Connect(kTask, 500), 0);
  EXPECT_EQ(*known.Register(kTask, 500, 0, 0), 1);
  EXPECT_EQ(known.Connect(kTask, 500), 1);  // reconnects
  EXPECT_EQ(*known.Register(kTask, 500, 1, 0), 1);
  EXPECT_EQ(*known.Register(kTask, 500, 0, 0), 1);  // the answer was lost
  // A restarted process is later, even if its clock is behind.
  EXPECT_EQ(known.Connect(kTask, 20), 0);
  EXPECT_EQ(*known.Register(kTask, 20, 0, 0), 2);
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));
  EXPECT_FALSE(known.IsSuperseded(kTask, 20));
  EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 500, 1, 0).status()));
  EXPECT_EQ(known.Newest(kTask), 2);
  EXPECT_EQ(known.Newest({"worker", 2}), 0);
}

TEST(Incarnations, GoesOnFromTheLedger) {
  Incarnations known;
  known.Connect(kTask, 500);
  known.Learn(kTask, 1'700'000'000'000'000);
  known.Learn(kTask, 3);
  EXPECT_EQ(*known.Register(kTask, 500, 0, 0), 1'700'000'000'000'001);
}

TEST(Incarnations, ARestoredServerGoesOnFromWhatTheProcessAndTheOtherServersKnow) {
  Incarnations known;
  known.Learn(kTask, 3);
  known.Connect(kTask, 500);
  EXPECT_EQ(*known.Register(kTask, 500, 5, 5), 5);
  known.Connect(kTask, 600);
  EXPECT_EQ(*known.Register(kTask, 600, 0, 7), 8);
  // Only now does the process report the incarnation that another server knows.
  EXPECT_EQ(*known.Register(kTask, 600, 8, 9), 10);
  // The ledger names a later incarnation, so this process is the older one.
  known.Learn(kTask, 20);
  EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 600, 10, 10).status()));
}

// After a restart of ps 0, two processes of a task connect. The older process had been cut off from
// the servers.
TEST(Incarnations, TheLaterOfTwoProcessesWinsForGoodInWhicheverOrderTheyCome) {
  Incarnations known;
  known.Connect(kTask, 20);
  EXPECT_EQ(*known.Register(kTask, 20, 2, 2), 2);
  known.Connect(kTask, 500);
  const Status refused = known.Register(kTask, 500, 1, 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_EQ(Message(refused),
            "refused: a later start of worker 1 is known (2 > 1): stop the older process");
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));
  EXPECT_FALSE(known.IsSuperseded(kTask, 20));
  EXPECT_EQ(known.Connect(kTask, 20), 2);
  EXPECT_EQ(*known.Register(kTask, 20, 2, 2), 2);

  Incarnations again;
  again.Connect(kTask, 500);
  EXPECT_EQ(*again.Register(kTask, 500, 1, 0), 1);
  again.Connect(kTask, 20);
  EXPECT_EQ(*again.Register(kTask, 20, 2, 1), 2);
  EXPECT_TRUE(again.IsSuperseded(kTask, 500));
  EXPECT_FALSE(again.IsSuperseded(kTask, 20));
}

// The older process connects first, and only the ledgers of other servers contain the later one.
TEST(Incarnations, AnOlderProcessIsRefusedIfOnlyOtherServersKnowTheLaterOne) {
  Incarnations known;
  known.Connect(kTask, 500);
  EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 500, 1, 2).status()));
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));
  known.Connect(kTask, 20);
  EXPECT_EQ(*known.Register(kTask, 20, 2, 2), 2);
}

TEST(Incarnations, AProcessThatHasNotRegisteredGivesWayToTheOneBefore) {
  Incarnations known;
  known.Connect(kTask, 20);
  EXPECT_EQ(*known.Register(kTask, 20, 2, 0), 2);
  known.Connect(kTask, 600);  // dies before it registers
  known.Connect(kTask, 500);
  EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 500, 1, 0).status()));
  EXPECT_EQ(known.Connect(kTask, 20), 2);
}

// ps 0 was restarted empty. Both processes have incarnations from the earlier ps 0, connect before
// the new ps 0 is filled, and register right afterwards.
TEST(Incarnations, ANewServerRefusesNeitherOfTwoProcessesUntilItKnowsTheLaterOne) {
  for (const bool older_first : {true, false}) {
    Incarnations known;
    known.Connect(kTask, 20);
    known.Connect(kTask, 500);
    EXPECT_FALSE(known.IsSuperseded(kTask, 20)) << "it may be the later one";
    EXPECT_TRUE(absl::IsAborted(known.Register(kTask, 20, 2, 0).status()))
        << "the other one has its place";
    if (older_first) {
      EXPECT_EQ(*known.Register(kTask, 500, 1, 0), 1);
      EXPECT_FALSE(known.IsSuperseded(kTask, 20));
    }
    known.Connect(kTask, 20);
    EXPECT_EQ(*known.Register(kTask, 20, 2, 0), 2);
    if (!older_first) {
      known.Connect(kTask, 500);
      EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 500, 1, 0).status()));
    }
    EXPECT_TRUE(known.IsSuperseded(kTask, 500));
    EXPECT_FALSE(known.IsSuperseded(kTask, 20));
  }
}

// A restarted process gets its incarnation from a ps 0 that knows fewer incarnations than the
// earlier ps 0 did.
TEST(Incarnations, AProcessWithANumberOfAPredecessorIsOlderThanOneThatHadNone) {
  for (const bool older_first : {true, false}) {
    Incarnations known;
    if (older_first) {
      known.Connect(kTask, 500);
      EXPECT_EQ(*known.Register(kTask, 500, 7, 0), 7);
    }
    known.Connect(kTask, 20);
    EXPECT_EQ(*known.Register(kTask, 20, 0, 0), older_first ? 8 : 1);
    if (!older_first) {
      known.Connect(kTask, 500);
      EXPECT_TRUE(absl::IsFailedPrecondition(known.Register(kTask, 500, 7, 0).status()));
    }
    EXPECT_TRUE(known.IsSuperseded(kTask, 500));
    EXPECT_EQ(known.Connect(kTask, 20), older_first ? 8 : 1);
  }
}

// Neither process has an incarnation, so the one that connected first counts as the older one.
TEST(Incarnations, AProcessThatGetsANumberSupersedesThoseThatConnectedBeforeIt) {
  Incarnations known;
  for (const int64_t instance : {500, 20, 500, 20}) known.Connect(kTask, instance);
  EXPECT_EQ(*known.Register(kTask, 20, 0, 0), 1);
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));

  Incarnations again;
  for (const int64_t instance : {500, 20, 500}) again.Connect(kTask, instance);
  EXPECT_EQ(*again.Register(kTask, 500, 0, 0), 1);
  EXPECT_FALSE(again.IsSuperseded(kTask, 20));
  again.Connect(kTask, 20);
  EXPECT_EQ(*again.Register(kTask, 20, 0, 0), 2);
  EXPECT_TRUE(again.IsSuperseded(kTask, 500));
}

TEST(Incarnations, OtherServersBelieveTheLaterProcess) {
  Incarnations known;
  EXPECT_EQ(known.Announce(kTask, 500, 1), OkStatus());
  EXPECT_EQ(known.Announce(kTask, 20, 2), OkStatus());
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));
  EXPECT_TRUE(absl::IsFailedPrecondition(known.Announce(kTask, 30, 1)));
  EXPECT_TRUE(known.IsSuperseded(kTask, 30));
  EXPECT_EQ(known.Announce(kTask, 20, 2), OkStatus());
  EXPECT_FALSE(known.IsSuperseded(kTask, 20));
}

// ps 0 was restored without a record of the first process, so it issued the same incarnation to the
// second process.
TEST(Incarnations, OtherServersRefuseANumberThatAnotherProcessHas) {
  Incarnations known;
  EXPECT_EQ(known.LeastFor(kTask, 500), 0);
  EXPECT_EQ(known.Announce(kTask, 500, 1), OkStatus());
  EXPECT_TRUE(absl::IsAborted(known.Announce(kTask, 20, 1)));
  EXPECT_FALSE(known.IsSuperseded(kTask, 20)) << "it may get a higher number";
  EXPECT_EQ(known.LeastFor(kTask, 500), 1);
  EXPECT_EQ(known.LeastFor(kTask, 20), 2);
  EXPECT_EQ(known.Announce(kTask, 20, 3), OkStatus());
  EXPECT_TRUE(known.IsSuperseded(kTask, 500));
  // An incarnation from a ledger may belong to the process itself.
  known.Learn({"worker", 2}, 7);
  EXPECT_EQ(known.LeastFor({"worker", 2}, 500), 7);
}

TEST(Incarnations, RefusesNumbersThatAreNeverIssued) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Incarnations known;
  known.Connect(kTask, 500);
  EXPECT_TRUE(absl::IsInvalidArgument(known.Register(kTask, 500, kMost, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(known.Register(kTask, 500, 0, kMost).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(known.Register(kTask, 500, -1, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(known.Announce(kTask, 500, kMost)));
  EXPECT_FALSE(known.Announce(kTask, 500, 0).ok());
  EXPECT_EQ(known.Newest(kTask), 0);
}

TEST(Incarnations, RemembersOnlySoManyEarlierProcesses) {
  Incarnations known;
  for (int64_t instance = 0; instance < 1000; ++instance) {
    known.Connect(kTask, instance);
    EXPECT_EQ(*known.Register(kTask, instance, 0, 0), instance + 1);
  }
  EXPECT_TRUE(known.IsSuperseded(kTask, 998));
  EXPECT_FALSE(known.IsSuperseded(kTask, 1));
}

}  // namespace
}  // namespace tfjob::ps
