#include "runtime/collectives/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"

namespace tfjob::collectives {
namespace {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

// Calls the function for every rank, each on its own thread.
void OnAllRanks(const Communicators& communicators,
                const std::function<void(Communicator&)>& body) {
  std::vector<Thread> threads;
  for (const auto& communicator : communicators) {
    threads.emplace_back("rank", [&body, &communicator] { body(*communicator); });
  }
  for (Thread& thread : threads) thread.Join();
}

std::span<std::byte> Bytes(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

TEST(ThreadCommunicator, AllOperationsHaveTheBitsOfTheTree) {
  // Around the sizes that a notice and a slot hold, and at which spans are used in place.
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
      // Both others wait for this rank: rank 0 directly, rank 2 for rank 0 or this one.
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
  OnAllRanks(MakeThreadCommunicators(2), [](Communicator& communicator) {
    std::vector<float> values(3);
    const Status status =
        communicator.rank() == 0
            ? communicator.AllReduce(Bytes(values), DType::kUInt8, Reduction::kSum)
            : communicator.Barrier();
    EXPECT_EQ(status, InvalidArgument("AllReduce of uint8: expected float32, float64, int32 or "
                                      "int64"));
  });
  OnAllRanks(MakeThreadCommunicators(2), [](Communicator& communicator) {
    std::vector<float> values(3);
    EXPECT_EQ(communicator.AllToAll(Bytes(values), sizeof(float)),
              InvalidArgument("AllToAll of 3 elements: expected a multiple of the 2 ranks"));
  });
  OnAllRanks(MakeThreadCommunicators(2), [](Communicator& communicator) {
    std::vector<float> values(1);
    EXPECT_EQ(communicator.Broadcast(Bytes(values), -1).code(), StatusCode::kInvalidArgument);
  });
}

TEST(ThreadCommunicator, MoreBytesThanAllowedAreAnErrorOnEveryRank) {
  OnAllRanks(MakeThreadCommunicators(3), [](Communicator& communicator) {
    const std::vector<std::byte> own(static_cast<size_t>(communicator.rank()));
    std::vector<std::byte> all;
    std::vector<size_t> sizes;
    EXPECT_EQ(communicator.AllGatherVariable(own, 3, all, sizes), OkStatus());
    EXPECT_EQ(communicator.AllGatherVariable(own, 2, all, sizes).code(),
              StatusCode::kResourceExhausted);
  });
}

TEST(ThreadCommunicator, MemoryOutlivesTheCommunicator) {
  Communicators communicators = MakeThreadCommunicators(1);
  auto memory = communicators[0]->Allocate(100);
  ASSERT_TRUE(memory.ok());
  communicators.clear();
  EXPECT_EQ((*memory)->bytes().size(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*memory)->bytes().data()) % 64, 0u);
  (*memory)->bytes()[99] = std::byte{1};
}

}  // namespace
}  // namespace tfjob::collectives
