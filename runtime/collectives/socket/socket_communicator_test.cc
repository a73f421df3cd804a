#include "runtime/collectives/socket/socket_communicator.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/socket/socket_frame.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/collectives/test_ranks.h"

namespace tfjob::collectives {
namespace {

std::unique_ptr<Communicator> Make(int rank, std::vector<wire::UniqueFd> sockets,
                                   const Costs& costs = {}) {
  auto made = MakeSocketCommunicator(
      {.rank = rank, .sockets = std::move(sockets), .costs = costs, .announce_after = 20ms});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

Communicators MakeRanks(size_t ranks, const Costs& costs = {},
                        SocketKind kind = SocketKind::kUnix) {
  Sockets sockets = Connect(ranks, kind);
  Communicators communicators;
  for (size_t rank = 0; rank < ranks; ++rank) {
    communicators.push_back(Make(static_cast<int>(rank), std::move(sockets[rank]), costs));
  }
  return communicators;
}

Communicators MakeAnyRanks(int ranks) {
  return MakeRanks(static_cast<size_t>(ranks));
}

Status Sum(Communicator& communicator, std::vector<float>& values) {
  return communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
}

// Costs that lead to the choice of one kind of algorithm wherever it is possible.
constexpr Costs kFewRounds{.round = 1, .frame = 0, .byte = 0, .reduced_byte = 0};
constexpr Costs kFewFrames{.round = 0, .frame = 1, .byte = 0, .reduced_byte = 0};
constexpr Costs kFewBytes{
    .round = 0, .frame = 0, .byte = 1, .reduced_byte = 1, .piece_bytes = 1000};

TEST(SocketCommunicator, AllOperationsHaveTheBitsOfTheTree) {
  for (const size_t ranks : {1, 2, 3, 4, 5}) {
    std::vector<int64_t> counts{0, 1, 4, 4097};
    if (ranks <= 3) counts.push_back(70'001);  // several pieces, and more than a socket can buffer
    OnAllRanks(MakeRanks(ranks), [&](Communicator& communicator) {
      EXPECT_EQ(CheckOperations(communicator, counts), "") << ranks << " ranks";
    });
  }
}

TEST(SocketCommunicator, WorksOverTcp) {
  OnAllRanks(MakeRanks(3, {}, SocketKind::kTcp), [](Communicator& communicator) {
    EXPECT_EQ(CheckOperations(communicator, {0, 1, 4097, 200'001}), "");
    EXPECT_EQ(HashesOfSums(communicator), kHashesOfThreeRanks);
  });
}

TEST(SocketCommunicator, TheAlgorithmDoesNotChangeTheBits) {
  for (const Costs& costs : {kFewRounds, kFewFrames, kFewBytes}) {
    OnAllRanks(MakeRanks(4, costs), [&](Communicator& communicator) {
      EXPECT_EQ(CheckOperations(communicator, {3, 2050}), "");
    });
    OnAllRanks(MakeRanks(3, costs), [](Communicator& communicator) {
      EXPECT_EQ(HashesOfSums(communicator), kHashesOfThreeRanks);
    });
  }
}

// Runs AllReduce of a type by a forced algorithm on four ranks. Returns the ranks' results.
std::vector<Status> ForcedSums(Algorithm algorithm, DType dtype) {
  Sockets sockets = Connect(4);
  Communicators communicators;
  for (size_t rank = 0; rank < 4; ++rank) {
    communicators.push_back(*MakeSocketCommunicator({.rank = static_cast<int>(rank),
                                                     .sockets = std::move(sockets[rank]),
                                                     .all_reduce = algorithm}));
  }
  std::vector<Status> results(4);
  OnAllRanks(communicators, [&](Communicator& communicator) {
    std::vector<float> values(1000, 1.F);
    results[static_cast<size_t>(communicator.rank())] =
        communicator.AllReduce(Bytes(values), dtype, Reduction::kSum);
  });
  return results;
}

TEST(SocketCommunicator, RefusesAForcedAlgorithmThatRoundsTooOften) {
  for (const Algorithm algorithm : {Algorithm::kDoubling, Algorithm::kHalving}) {
    EXPECT_EQ(ForcedSums(algorithm, DType::kFloat32), std::vector<Status>(4));
    EXPECT_EQ(ForcedSums(algorithm, DType::kBFloat16),
              std::vector<Status>(
                  4, InvalidArgument("AllReduce of bfloat16 by ", Name(algorithm),
                                     " on 4 ranks: this algorithm would round partial results; "
                                     "use exchange or direct")));
  }
  EXPECT_EQ(ForcedSums(Algorithm::kDirect, DType::kFloat16), std::vector<Status>(4));
}

TEST(SocketCommunicator, AnAbortEndsTheWaitsOfAllRanks) {
  const Communicators communicators = MakeRanks(3);
  OnAllRanks(communicators, [&](Communicator& communicator) {
    // There are so few values that no rank is in the middle of a frame, where it could not send its
    // reason.
    std::vector<float> values(1'000);
    if (communicator.rank() == 1) {
      while (communicators[0]->CurrentWait().on != 1) std::this_thread::yield();
      const Waiting wait = communicators[0]->CurrentWait();
      EXPECT_EQ(wait.name, "AllReduce");
      EXPECT_EQ(wait.operation, 1);
      communicator.Abort(Unavailable("worker 7 is lost"));
      communicator.Abort(Internal("too late to be the reason"));
    }
    const Status status = Sum(communicator, values);
    EXPECT_EQ(status, Unavailable("worker 7 is lost"));
    EXPECT_EQ(communicator.Barrier(), status);
    EXPECT_EQ(communicator.CurrentWait().on, -1);
  });
}

TEST(SocketCommunicator, AnAbortByAnotherThreadEndsTheWait) {
  const Communicators communicators = MakeRanks(2);
  Thread watcher("watcher", [&] {
    while (communicators[0]->CurrentWait().on != 1) std::this_thread::yield();
    communicators[0]->Abort(DeadlineExceeded("rank 1 is stuck"));
  });
  EXPECT_EQ(communicators[0]->Barrier(), DeadlineExceeded("rank 1 is stuck"));
  watcher.Join();
  // Rank 0 had reached the first barrier.
  EXPECT_EQ(communicators[1]->Barrier(), OkStatus());
  EXPECT_EQ(communicators[1]->Barrier(), DeadlineExceeded("rank 1 is stuck"));
}

TEST(SocketCommunicator, ARankThatLeavesEndsTheWaitsOfThoseThatNeedIt) {
  Communicators communicators = MakeRanks(2);
  Thread thread("rank", [&] {
    EXPECT_EQ(communicators[0]->Barrier(), OkStatus());
    EXPECT_EQ(communicators[0]->Barrier(), Cancelled("rank 1 has left the group"));
  });
  EXPECT_EQ(communicators[1]->Barrier(), OkStatus());
  communicators[1].reset();
  thread.Join();
}

// Calls CheckPeers until it returns an error, for at most 20 s.
Status AwaitNews(SocketCommunicator& communicator) {
  const Duration deadline = RealClock().Monotonic() + 20s;
  Status news;
  while (news.ok() && RealClock().Monotonic() < deadline) news = communicator.CheckPeers();
  return news;
}

TEST(SocketCommunicator, PeersCanBeCheckedBetweenOperations) {
  Communicators communicators = MakeRanks(2);
  auto& first = static_cast<SocketCommunicator&>(*communicators[0]);
  Thread thread("rank", [&] { EXPECT_EQ(communicators[1]->Barrier(), OkStatus()); });
  // CheckPeers does not report frames of the next operation or announcements as news, and does not
  // lose them.
  while (communicators[1]->CurrentWait().on != 0) std::this_thread::yield();
  const Duration announced = RealClock().Monotonic() + 50ms;
  while (RealClock().Monotonic() < announced) EXPECT_EQ(first.CheckPeers(), OkStatus());
  EXPECT_EQ(first.Barrier(), OkStatus());
  thread.Join();
  communicators[1]->Abort(Unavailable("worker 7 is lost"));
  EXPECT_EQ(AwaitNews(first), Unavailable("worker 7 is lost"));
}

TEST(SocketCommunicator, ARankThatHasLeftIsNoNewsButALostRankIs) {
  Communicators communicators = MakeRanks(2);
  auto& first = static_cast<SocketCommunicator&>(*communicators[0]);
  communicators[1].reset();
  EXPECT_EQ(first.CheckPeers(), OkStatus());
  EXPECT_EQ(first.Barrier(), Cancelled("rank 1 has left the group"));
  Sockets sockets = Connect(2);
  const auto survivor = Make(0, std::move(sockets[0]));
  sockets[1].clear();
  EXPECT_EQ(static_cast<SocketCommunicator&>(*survivor).CheckPeers(),
            Unavailable("rank 1 closed its connection after operation 0, Barrier"));
}

// An abort by another thread reaches the other ranks, even if it comes during a check.
TEST(SocketCommunicator, AnAbortDuringChecksReachesTheOtherRanks) {
  for (int i = 0; i < 20; ++i) {
    Communicators communicators = MakeRanks(2);
    auto& first = static_cast<SocketCommunicator&>(*communicators[0]);
    Thread watcher("watcher", [&] { first.Abort(DeadlineExceeded("too late")); });
    EXPECT_EQ(AwaitNews(first), DeadlineExceeded("too late"));
    watcher.Join();
    EXPECT_EQ(communicators[1]->Barrier(), DeadlineExceeded("too late"));
  }
}

TEST(SocketCommunicator, WhatARankSentBeforeItLeftStillArrives) {
  Communicators communicators = MakeRanks(3);
  std::vector<float> values(1000, 1.f);
  EXPECT_EQ(communicators[2]->Broadcast(Bytes(values), 2), OkStatus());
  communicators[2].reset();
  for (const int rank : {0, 1}) {
    std::vector<float> received(1000);
    EXPECT_EQ(communicators[rank]->Broadcast(Bytes(received), 2), OkStatus());
    EXPECT_EQ(received, values);
  }
}

// The rank that notices the death first names the dead rank. If that rank is sending a frame at the
// time, it cannot send the reason, so the third rank may see only that the connection was closed.
void ExpectThatADeadRankIsNamed(SocketKind kind) {
  for (const size_t count : {size_t{10}, size_t{2'000'000}}) {
    Sockets sockets = Connect(3, kind);
    Communicators communicators;
    for (const int rank : {0, 1}) communicators.push_back(Make(rank, std::move(sockets[rank])));
    // Rank 2 dies after its peers have started the operation: its sockets close without a message.
    Thread death("death", [&] {
      while (communicators[0]->CurrentWait().on < 0 && communicators[1]->CurrentWait().on < 0) {
        std::this_thread::yield();
      }
      sockets[2].clear();
    });
    std::atomic<int> named = 0;
    OnAllRanks(communicators, [&](Communicator& communicator) {
      std::vector<float> values(count);
      const Status status = Sum(communicator, values);
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_NE(Message(status).find("closed its connection in operation 1, AllReduce("),
                std::string::npos)
          << status;
      if (Message(status).find("rank 2 ") == 0) ++named;
    });
    death.Join();
    EXPECT_GE(named, 1);
  }
}

TEST(SocketCommunicator, ADeadRankIsNamedAtOnce) {
  ExpectThatADeadRankIsNamed(SocketKind::kUnix);
  ExpectThatADeadRankIsNamed(SocketKind::kTcp);
}

// Reads a frame without a payload.
FrameHeader ReadHeader(int socket) {
  FrameBytes bytes;
  size_t have = 0;
  while (have < bytes.size()) {
    EXPECT_TRUE(wire::AwaitSocket(socket, POLLIN, RealClock().Monotonic() + 10s));
    const ssize_t got = read(socket, bytes.data() + have, bytes.size() - have);
    if (got <= 0) return {};
    have += static_cast<size_t>(got);
  }
  return *DecodeFrame(bytes);
}

// An announcement makes the poll of a waiting rank return, but does not restart the time of the
// wait.
TEST(SocketCommunicator, AWaitIsAsOldAsItsBeginning) {
  Sockets sockets = Connect(2);
  const auto communicator = Make(0, std::move(sockets[0]));
  const auto wait = [&] {
    Waiting now;
    while ((now = communicator->CurrentWait()).on != 1) std::this_thread::yield();
    return now;
  };
  Thread rank("rank", [&] { EXPECT_FALSE(communicator->Barrier().ok()); });
  EXPECT_EQ(ReadHeader(sockets[1][0].get()).kind, FrameKind::kData);
  const Duration since = wait().since;
  EXPECT_EQ(ReadHeader(sockets[1][0].get()).kind, FrameKind::kCall);
  EXPECT_EQ(wait().since, since);
  sockets[1].clear();
  rank.Join();
}

// Calls a different function on each of two ranks, and expects that both return the same error.
void ExpectMismatch(const std::function<Status(Communicator&)>& first,
                    const std::function<Status(Communicator&)>& second, const std::string& a,
                    const std::string& b) {
  OnAllRanks(MakeRanks(2), [&](Communicator& communicator) {
    const Status status = communicator.rank() == 0 ? first(communicator) : second(communicator);
    EXPECT_EQ(status,
              InvalidArgument("rank 0 called ", a, " as operation 1, but rank 1 called ", b,
                              " as operation 1; all ranks must call the same operations in the "
                              "same order"));
  });
}

TEST(SocketCommunicator, DifferentCallsAreAnErrorThatNamesBoth) {
  const auto all_reduce = [](size_t count, DType dtype) {
    return [count, dtype](Communicator& communicator) {
      std::vector<float> values(count);
      return communicator.AllReduce(Bytes(values), dtype, Reduction::kSum);
    };
  };
  const auto broadcast = [](int root) {
    return [root](Communicator& communicator) {
      std::vector<float> values(4);
      const Status status = communicator.Broadcast(Bytes(values), root);
      return status.ok() ? communicator.Barrier() : status;
    };
  };
  const auto barrier = [](Communicator& communicator) { return communicator.Barrier(); };
  ExpectMismatch(all_reduce(4, DType::kFloat32), all_reduce(1'000'000, DType::kFloat32),
                 "AllReduce(16 bytes of float32, sum)", "AllReduce(4000000 bytes of float32, sum)");
  ExpectMismatch(all_reduce(4, DType::kFloat32), all_reduce(4, DType::kInt32),
                 "AllReduce(16 bytes of float32, sum)", "AllReduce(16 bytes of int32, sum)");
  ExpectMismatch(barrier, all_reduce(0, DType::kFloat64), "Barrier",
                 "AllReduce(0 bytes of float64, sum)");
  // Each rank waits for the other, and neither sends data, so only their announcements reveal the
  // mismatch.
  ExpectMismatch(broadcast(1), broadcast(0), "Broadcast(16 bytes, root 1)",
                 "Broadcast(16 bytes, root 0)");
  // Rank 0 completes its operation before rank 1 announces the call in which it waits.
  ExpectMismatch(broadcast(0), barrier, "Broadcast(16 bytes, root 0)", "Barrier");
}

TEST(SocketCommunicator, OtherCostsAreAnError) {
  Sockets sockets = Connect(2);
  Communicators communicators;
  communicators.push_back(Make(0, std::move(sockets[0]), kFewRounds));
  communicators.push_back(Make(1, std::move(sockets[1]), kFewBytes));
  OnAllRanks(communicators, [](Communicator& communicator) {
    std::vector<float> values(1000);
    const Status status = Sum(communicator, values);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  });
}

TEST(SocketCommunicator, WrongArgumentsEndTheOperationsOfAllRanks) {
  ExpectWrongArgumentsEndTheOperationsOfAllRanks(MakeAnyRanks);
}

TEST(SocketCommunicator, MoreBytesThanAllowedAreAnErrorOnEveryRank) {
  ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(MakeAnyRanks);
}

TEST(SocketCommunicator, DifferentLimitsAreAnError) {
  ExpectDifferentLimitsAreAnError(MakeAnyRanks);
}

TEST(SocketCommunicator, ReasonsArePrintable) {
  ExpectReasonsArePrintable(MakeAnyRanks);
}

TEST(SocketCommunicator, MemoryOutlivesTheCommunicator) {
  ExpectMemoryOutlivesTheCommunicator(MakeAnyRanks);
}

enum class Ending { kStopsSending, kCloses };

// Rank 1 is a peer that sends only `bytes`. Returns the status of rank 0's operation.
Status FacedWith(std::span<const std::byte> bytes, Ending ending = Ending::kStopsSending) {
  Sockets sockets = Connect(2);
  const auto communicator = Make(0, std::move(sockets[0]));
  EXPECT_EQ(write(sockets[1][0].get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  if (ending == Ending::kCloses) {
    sockets[1].clear();
  } else {
    EXPECT_EQ(shutdown(sockets[1][0].get(), SHUT_WR), 0);
  }
  std::vector<float> values(4);
  return Sum(*communicator, values);
}

// Returns the only frame that rank 1 sends in the first operation, an all-reduce of four zeros.
std::vector<std::byte> FrameOfASum() {
  const Call call{.operation = Operation::kAllReduce,
                  .bytes = 16,
                  .element_bytes = 4,
                  .dtype = DType::kFloat32};
  const FrameHeader header{.call = call,
                           .operation = 1,
                           .fingerprint = MakePlan(call, 0, 2, {}).fingerprint,
                           .length = 16};
  std::vector<std::byte> frame(kFrameHeaderBytes + 16);
  std::ranges::copy(EncodeFrame(header), frame.begin());
  return frame;
}

TEST(SocketCommunicator, AnyChangedByteOfAHeaderIsAnError) {
  const std::vector<std::byte> frame = FrameOfASum();
  ASSERT_EQ(FacedWith(frame), OkStatus());
  for (size_t i = 0; i < kFrameHeaderBytes; ++i) {
    for (const int value : {0x00, 0x01, 0x02, 0x03, 0x04, 0x7F, 0x80, 0xFF}) {
      std::vector<std::byte> changed = frame;
      changed[i] = static_cast<std::byte>(value);
      if (changed[i] == frame[i]) continue;
      EXPECT_FALSE(FacedWith(changed).ok()) << "byte " << i << " is " << value;
    }
  }
}

TEST(SocketCommunicator, ATruncatedFrameIsAnError) {
  const std::vector<std::byte> frame = FrameOfASum();
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(FacedWith(std::span(frame).first(size)).code(), StatusCode::kUnavailable) << size;
  }
}

std::vector<std::byte> FrameOf(const FrameHeader& header, std::string_view payload) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload.size());
  std::ranges::copy(EncodeFrame(header), frame.begin());
  std::ranges::copy(std::as_bytes(std::span(payload)), frame.begin() + kFrameHeaderBytes);
  return frame;
}

std::vector<std::byte> FrameOfAnAbort(const Status& why) {
  return FrameOf({.kind = FrameKind::kAbort,
                  .number = static_cast<uint32_t>(why.code()),
                  .length = static_cast<int64_t>(Message(why).size())},
                 Message(why));
}

std::vector<std::byte> Join(const std::vector<std::vector<std::byte>>& frames) {
  std::vector<std::byte> all;
  for (const auto& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
  return all;
}

// This rank cannot send to a peer that has closed its connection. It must find the peer's reason
// even if this reason follows frames for which this rank has no place in memory.
TEST(SocketCommunicator, TheReasonOfAPeerThatHasClosedItsConnectionIsFound) {
  const Status why = Aborted("the numbers are not finite");
  const auto sum = FrameOfASum(), reason = FrameOfAnAbort(why);
  const auto later = FrameOf({.call = {.operation = Operation::kBroadcast, .bytes = 100'000},
                              .operation = 2,
                              .length = 100'000},
                             std::string(100'000, 'x'));
  for (const auto& frames : {Join({reason}), Join({sum, reason}), Join({sum, later, reason})}) {
    EXPECT_EQ(FacedWith(frames, Ending::kCloses), why);
  }
  // In this case, the peer sends no reason.
  EXPECT_EQ(FacedWith(Join({sum, later}), Ending::kCloses).code(), StatusCode::kUnavailable);
  EXPECT_EQ(FacedWith(std::span(sum).first(70), Ending::kCloses).code(), StatusCode::kUnavailable);
}

TEST(SocketCommunicator, APeerAnnouncesAnOperationOnce) {
  const Call call{.operation = Operation::kAllReduce,
                  .bytes = 16,
                  .element_bytes = 4,
                  .dtype = DType::kFloat32};
  const std::vector<std::byte> frame =
      FrameOf({.kind = FrameKind::kCall, .call = call, .operation = 1}, "");
  EXPECT_EQ(FacedWith(frame).code(), StatusCode::kUnavailable);  // its connection has ended
  EXPECT_EQ(FacedWith(Join({frame, frame})), DataLoss("rank 1 announced operation 1 again"));
}

TEST(SocketCommunicator, APeerAnnouncesFewOperations) {
  std::vector<std::vector<std::byte>> frames;
  for (int64_t operation = 2; operation < 67; ++operation) {
    frames.push_back(FrameOf({.kind = FrameKind::kCall,
                              .call = {.operation = Operation::kBarrier},
                              .operation = operation},
                             ""));
  }
  EXPECT_EQ(FacedWith(Join(frames)),
            DataLoss("rank 1 announced more than 64 operations while rank 0 was in operation 1"));
  frames.pop_back();
  EXPECT_EQ(FacedWith(Join(frames)).code(), StatusCode::kUnavailable);  // its connection has ended
}

TEST(SocketCommunicator, ReasonsOfPeersAreBoundedAndPrintable) {
  const std::string text = "\x1b[31mred\n";
  const FrameHeader header{
      .kind = FrameKind::kAbort, .number = 9999, .length = static_cast<int64_t>(text.size())};
  std::vector<std::byte> frame(kFrameHeaderBytes + text.size());
  std::ranges::copy(EncodeFrame(header), frame.begin());
  std::ranges::copy(std::as_bytes(std::span(text)), frame.begin() + kFrameHeaderBytes);
  EXPECT_EQ(FacedWith(frame), Unavailable("?[31mred?"));
  FrameHeader longer = header;
  longer.length = kMostReasonBytes + 1;
  EXPECT_EQ(DecodeFrame(EncodeFrame(longer)).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tfjob::collectives
