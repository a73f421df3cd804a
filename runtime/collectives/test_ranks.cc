#include "runtime/collectives/test_ranks.h"

#include <gtest/gtest.h>

#include "runtime/base/thread.h"

namespace tfjob::collectives {

void OnAllRanks(const Communicators& communicators,
                const std::function<void(Communicator&)>& body) {
  std::vector<Thread> threads;
  for (const auto& communicator : communicators) {
    threads.emplace_back("rank", [&body, &communicator] { body(*communicator); });
  }
  for (Thread& thread : threads) thread.Join();
}

void ExpectWrongArgumentsEndTheOperationsOfAllRanks(const MakeCommunicators& make) {
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<float> values(3);
    const Status status =
        communicator.rank() == 0
            ? communicator.AllReduce(Bytes(values), DType::kUInt8, Reduction::kSum)
            : communicator.Barrier();
    EXPECT_EQ(status, InvalidArgument("AllReduce of uint8: expected float32, float64, bfloat16, "
                                      "float16, int32 or int64"));
  });
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<float> values(4);
    EXPECT_EQ(communicator.ReduceScatter(Bytes(values), DType::kInt64, Reduction::kMean),
              InvalidArgument("ReduceScatter of int64: integers have no mean; use sum, and divide "
                              "the result"));
  });
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<std::byte> three(3);
    EXPECT_EQ(communicator.AllReduce(three, DType::kBFloat16, Reduction::kSum).code(),
              StatusCode::kInvalidArgument);
  });
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<float> values(3);
    EXPECT_EQ(communicator.AllToAll(Bytes(values), sizeof(float)),
              InvalidArgument("AllToAll of 3 elements: expected a multiple of the 2 ranks"));
  });
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<float> values(1);
    EXPECT_EQ(communicator.Broadcast(Bytes(values), -1).code(), StatusCode::kInvalidArgument);
  });
}

void ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(const MakeCommunicators& make) {
  OnAllRanks(make(3), [](Communicator& communicator) {
    const std::vector<std::byte> own(static_cast<size_t>(communicator.rank()));
    std::vector<std::byte> all;
    std::vector<size_t> sizes;
    EXPECT_EQ(communicator.AllGatherVariable(own, 3, all, sizes), OkStatus());
    EXPECT_EQ(communicator.AllGatherVariable(own, 2, all, sizes).code(),
              StatusCode::kResourceExhausted);
  });
}

void ExpectDifferentLimitsAreAnError(const MakeCommunicators& make) {
  OnAllRanks(make(2), [](Communicator& communicator) {
    std::vector<std::byte> all;
    std::vector<size_t> sizes;
    const auto most = static_cast<size_t>(7 + communicator.rank());
    const Status status = communicator.AllGatherVariable({}, most, all, sizes);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    for (const int rank : {0, 1}) {
      const std::string call =
          StrCat("rank ", rank, " called AllGatherVariable(at most ", 7 + rank, " bytes)");
      EXPECT_NE(Message(status).find(call), std::string_view::npos) << status;
    }
  });
}

void ExpectReasonsArePrintable(const MakeCommunicators& make) {
  OnAllRanks(make(2), [](Communicator& communicator) {
    if (communicator.rank() == 1) communicator.Abort(Aborted("\x1b[31mred\n \xC3\xBC \xFF"));
    const Status status = communicator.Barrier();
    EXPECT_TRUE(communicator.rank() == 1 || status == Aborted("?[31mred? ?? ?")) << status;
  });
}

void ExpectMemoryOutlivesTheCommunicator(const MakeCommunicators& make) {
  Communicators communicators = make(1);
  auto memory = communicators[0]->Allocate(100);
  ASSERT_TRUE(memory.ok());
  communicators.clear();
  EXPECT_EQ((*memory)->bytes().size(), 100U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*memory)->bytes().data()) % 64, 0U);
  (*memory)->bytes()[99] = std::byte{1};
}

}  // namespace tfjob::collectives
