#include "runtime/collectives/shared/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/test_ranks.h"

namespace tfjob::collectives {
namespace {

TEST(ThreadCommunicator, AllOperationsHaveTheBitsOfTheTree) {
  // The counts are close to the capacities of a notice and of a slot, and to the smallest size at
  // which spans are used in place.
  const std::vector<int64_t> counts{0, 1, 4, 11, 22, 23, 500, 8192, 8193, 70'001};
  for (const int ranks : {1, 2, 3, 4, 5}) {
    OnAllRanks(MakeThreadCommunicators(ranks), [&](Communicator& communicator) {
      EXPECT_EQ(CheckOperations(communicator, counts), "") << ranks << " ranks";
    });
  }
}

TEST(ThreadCommunicator, TheBitsOfSumsNeverChange) {
  OnAllRanks(MakeThreadCommunicators(3), [](Communicator& communicator) {
    EXPECT_EQ(HashesOfSums(communicator), kHashesOfThreeRanks);
  });
}

TEST(ThreadCommunicator, AnAbortEndsTheWaitsOfAllRanks) {
  const Communicators communicators = MakeThreadCommunicators(3);
  OnAllRanks(communicators, [&](Communicator& communicator) {
    std::vector<float> values(100'000);
    if (communicator.rank() == 1) {
      // The other two ranks wait for this rank: rank 0 directly, and rank 2 directly or through
      // rank 0.
      while (communicators[0]->CurrentWait().on != 1) std::this_thread::yield();
      const Waiting wait = communicators[0]->CurrentWait();
      EXPECT_EQ(wait.name, "AllReduce");
      EXPECT_EQ(wait.operation, 1);
      communicator.Abort(Unavailable("worker 7 is lost"));
      communicators[2]->Abort(Internal("too late to be the reason"));
    }
    const Status status = communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
    EXPECT_EQ(status, Unavailable("worker 7 is lost"));
    EXPECT_EQ(communicator.Barrier(), status);
    EXPECT_EQ(communicator.CurrentWait().on, -1);
  });
}

// A watcher aborts while the operation fails for another reason.
TEST(ThreadCommunicator, AnOperationThatFailsDuringAnAbortHasAReason) {
  for (int i = 0; i < 500; ++i) {
    const Communicators communicators = MakeThreadCommunicators(2);
    std::atomic<bool> aborts = false;
    Thread watcher("watcher", [&] {
      aborts = true;
      communicators[0]->Abort(Aborted("worker 7 is lost"));
    });
    std::vector<float> values(1);
    while (!aborts) std::this_thread::yield();
    const Status status =
        communicators[0]->AllReduce(Bytes(values), DType::kUInt8, Reduction::kSum);
    watcher.Join();
    EXPECT_TRUE(absl::IsAborted(status) || absl::IsInvalidArgument(status)) << status;
  }
}

TEST(ThreadCommunicator, ARankThatLeavesEndsTheWaitsOfTheOthers) {
  Communicators communicators = MakeThreadCommunicators(2);
  Thread thread("rank", [&] {
    EXPECT_EQ(communicators[0]->Barrier(), OkStatus());
    EXPECT_EQ(communicators[0]->Barrier(), Cancelled("rank 1 has left the group"));
  });
  EXPECT_EQ(communicators[1]->Barrier(), OkStatus());
  communicators[1].reset();
  thread.Join();
}

// Calls a different function on each of two ranks, and expects that both return the same error.
void ExpectMismatch(const std::function<Status(Communicator&)>& first,
                    const std::function<Status(Communicator&)>& second, const std::string& a,
                    const std::string& b) {
  OnAllRanks(MakeThreadCommunicators(2), [&](Communicator& communicator) {
    const Status status = communicator.rank() == 0 ? first(communicator) : second(communicator);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string text(Message(status));
    EXPECT_NE(text.find(StrCat("rank 0 called ", a)), std::string::npos) << text;
    EXPECT_NE(text.find(StrCat("rank 1 called ", b)), std::string::npos) << text;
  });
}

TEST(ThreadCommunicator, DifferentCallsAreAnErrorThatNamesBoth) {
  const auto all_reduce = [](size_t count, DType dtype) {
    return [count, dtype](Communicator& communicator) {
      std::vector<float> values(count);
      return communicator.AllReduce(Bytes(values), dtype, Reduction::kSum);
    };
  };
  const auto barrier = [](Communicator& communicator) { return communicator.Barrier(); };
  ExpectMismatch(all_reduce(4, DType::kFloat32), all_reduce(100'000, DType::kFloat32),
                 "AllReduce(16 bytes of float32, sum)", "AllReduce(400000 bytes of float32, sum)");
  ExpectMismatch(all_reduce(4, DType::kFloat32), all_reduce(4, DType::kInt32),
                 "AllReduce(16 bytes of float32, sum)", "AllReduce(16 bytes of int32, sum)");
  ExpectMismatch(barrier, all_reduce(0, DType::kFloat64), "Barrier",
                 "AllReduce(0 bytes of float64, sum)");
}

TEST(ThreadCommunicator, WrongArgumentsEndTheOperationsOfAllRanks) {
  ExpectWrongArgumentsEndTheOperationsOfAllRanks(MakeThreadCommunicators);
}

TEST(ThreadCommunicator, MoreBytesThanAllowedAreAnErrorOnEveryRank) {
  ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(MakeThreadCommunicators);
}

TEST(ThreadCommunicator, DifferentLimitsAreAnError) {
  ExpectDifferentLimitsAreAnError(MakeThreadCommunicators);
}

TEST(ThreadCommunicator, ReasonsArePrintable) {
  ExpectReasonsArePrintable(MakeThreadCommunicators);
}

TEST(ThreadCommunicator, MemoryOutlivesTheCommunicator) {
  ExpectMemoryOutlivesTheCommunicator(MakeThreadCommunicators);
}

}  // namespace
}  // namespace tfjob::collectives
