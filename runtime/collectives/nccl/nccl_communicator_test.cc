// Tests communicators over NCCL, on a fake library and a fake driver. The ranks are threads.
#include "runtime/collectives/nccl/nccl_communicator.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/nccl/fake_nccl.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/collectives/test_ranks.h"
#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::collectives::nccl {
namespace {

using Fault = std::function<NcclFault(int rank, int64_t operation)>;
using Made = StatusOr<std::unique_ptr<Communicator>>;

struct Settings {
  uint64_t seed = 1;
  size_t least_bytes = 0;
  Duration patience{60s}, connect_patience{60s};
  Fault fault = [](int, int64_t) { return NcclFault::kNone; };
  std::function<int(int thread)> version = [](int) { return 22809; };
  Interrupt interrupt = nullptr;
  // The driver of each rank; by default, the fake driver.
  std::function<const device::cuda::DriverApi*(int rank)> driver = nullptr;
  Sockets sockets = {};  // by default, new ones
};

// Creates the ranks' communicators, each on its own thread.
std::vector<Made> Connect(int ranks, Settings settings = {}) {
  const auto& driver = device::cuda::FakeDriver({.seed = settings.seed});
  const NcclApi& nccl =
      FakeNccl({.seed = settings.seed, .version = settings.version, .fault = settings.fault});
  if (settings.sockets.empty()) {
    settings.sockets = collectives::Connect(static_cast<size_t>(ranks));
  }
  std::vector<Made> made(static_cast<size_t>(ranks));
  std::vector<Thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      auto device = device::cuda::CudaRuntime::Create(
          settings.driver ? *settings.driver(rank) : driver, {}, {});
      auto control = MakeSocketCommunicator(
          {.rank = rank, .sockets = std::move(settings.sockets[static_cast<size_t>(rank)])});
      made[static_cast<size_t>(rank)] =
          MakeNcclCommunicator({.nccl = &nccl,
                                .device = *std::move(device),
                                .control = *std::move(control),
                                .least_bytes = settings.least_bytes,
                                .patience = settings.patience,
                                .connect_patience = settings.connect_patience,
                                .interrupt = settings.interrupt});
    });
  }
  for (Thread& thread : threads) thread.Join();
  return made;
}

Communicators MakeRanks(int ranks, Settings settings = {}) {
  Communicators communicators;
  for (Made& one : Connect(ranks, std::move(settings))) {
    EXPECT_TRUE(one.ok()) << one.status();
    communicators.push_back(*std::move(one));
  }
  return communicators;
}

// Starts one thread per rank, which calls the function and then destroys the rank's communicator.
// All ranks therefore leave together.
void OnNcclRanks(Communicators communicators, const std::function<void(Communicator&)>& body) {
  std::vector<Thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back("rank", [&] {
      body(*communicator);
      communicator.reset();
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(FakeNcclState().communicators, 0);
}

Status SumOf(Communicator& communicator, size_t count = 1000) {
  std::vector<float> values(count, 1.F);
  return communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
}

// Lets all ranks compute sums until one fails. Returns the ranks' errors.
std::vector<Status> ErrorsOf(Communicators communicators) {
  std::vector<Status> errors(communicators.size());
  OnNcclRanks(std::move(communicators), [&](Communicator& communicator) {
    Status& error = errors[static_cast<size_t>(communicator.rank())];
    while (error.ok()) error = SumOf(communicator);
    EXPECT_EQ(communicator.Barrier(), error) << "the error lasts";
  });
  return errors;
}

Fault On(int rank, int64_t operation, NcclFault fault) {
  return [=](int r, int64_t o) { return r == rank && o == operation ? fault : NcclFault::kNone; };
}

TEST(NcclCommunicator, FulfilsTheContract) {
  for (const int ranks : {1, 2, 3}) {
    OnNcclRanks(MakeRanks(ranks, {.seed = static_cast<uint64_t>(ranks)}),
                [&](Communicator& communicator) {
                  EXPECT_EQ(communicator.transport(), "nccl");
                  EXPECT_EQ(CheckOperations(communicator, {0, ranks == 2 ? 5 : 130}), "")
                      << ranks << " ranks";
                });
    EXPECT_GT(FakeNcclState().operations, 100);
    EXPECT_EQ(FakeNcclState().aborts, 0);
  }
}

TEST(NcclCommunicator, SmallSpansUseTheSocketsAlone) {
  OnNcclRanks(MakeRanks(2, {.least_bytes = 400}), [](Communicator& communicator) {
    EXPECT_EQ(SumOf(communicator, 99), OkStatus());
    EXPECT_EQ(FakeNcclState().operations, 0);
    EXPECT_EQ(communicator.Barrier(), OkStatus());
    EXPECT_EQ(SumOf(communicator, 100), OkStatus());
    EXPECT_EQ(CheckOperations(communicator, {99}), "");
  });
  EXPECT_GT(FakeNcclState().operations, 0);
}

TEST(NcclCommunicator, AllRanksGetTheHashesOfTheFake) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    OnNcclRanks(MakeRanks(3, {.seed = seed}), [](Communicator& communicator) {
      EXPECT_EQ(HashesOfSums(communicator), kHashesOfThreeRanks);
    });
  }
}

TEST(NcclCommunicator, GivesTheGuaranteesOfEveryTransport) {
  const auto make = [](int ranks) { return MakeRanks(ranks); };
  ExpectWrongArgumentsEndTheOperationsOfAllRanks(make);
  ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(make);
  ExpectDifferentLimitsAreAnError(make);
  ExpectReasonsArePrintable(make);
  ExpectMemoryOutlivesTheCommunicator(make);
}

TEST(NcclCommunicator, RanksThatCallDifferentOperationsAreNamedWithTheirCalls) {
  OnNcclRanks(MakeRanks(2), [](Communicator& communicator) {
    EXPECT_EQ(SumOf(communicator, communicator.rank() == 0 ? 10 : 20),
              InvalidArgument("rank 0 called AllReduce(40 bytes of float32, sum), but rank 1 "
                              "called AllReduce(80 bytes of float32, sum); all ranks must call the "
                              "same operations in the same order"));
  });
}

TEST(NcclCommunicator, ARemoteErrorEndsTheOperationsOfAllRanksAsUnavailable) {
  for (const NcclFault fault : {NcclFault::kRemoteError, NcclFault::kLostRank}) {
    const std::vector<Status> errors = ErrorsOf(MakeRanks(3, {.fault = On(1, 3, fault)}));
    for (const Status& error : errors) {
      EXPECT_EQ(error, Unavailable("NCCL in AllReduce(4000 bytes of float32, sum): remote process "
                                   "exited or there was a network error"));
    }
    EXPECT_EQ(FakeNcclState().aborts, 3);
  }
}

TEST(NcclCommunicator, AnOperationThatHangsIsAbortedOnAllRanks) {
  for (const NcclFault fault : {NcclFault::kHang, NcclFault::kSlowCall}) {
    const std::vector<Status> errors =
        ErrorsOf(MakeRanks(3, {.patience = 200ms, .fault = On(2, 2, fault)}));
    for (const Status& error : errors) {
      EXPECT_EQ(error, errors[0]);
      EXPECT_EQ(error.code(), StatusCode::kDeadlineExceeded);
      EXPECT_NE(Message(error).find("NCCL has not completed AllReduce(4000 bytes of float32, sum) "
                                    "within 0.2 s after all ranks had called it"),
                std::string::npos)
          << error;
    }
    EXPECT_EQ(FakeNcclState().aborts, 3);
  }
}

// Blocks the stream of one rank before its next copy.
std::atomic<bool> block_next{false}, blocked_ends{false};
device::cuda::Result CopyBehindABlockedOperation(device::cuda::DeviceAddress to,
                                                 device::cuda::DeviceAddress from, size_t bytes,
                                                 device::cuda::StreamHandle stream) {
  if (block_next.exchange(false)) {
    (void)device::cuda::SubmitToFakeDriver({.name = "blocks the stream",
                                            .accesses = {},
                                            .run = [](std::span<void* const>) {},
                                            .ready = [] { return blocked_ends.load(); }},
                                           stream);
  }
  return device::cuda::FakeDriverFunctions().MemcpyAsync(to, from, bytes, stream);
}

TEST(NcclCommunicator, ARankWhoseGpuIsBlockedIsNamed) {
  device::cuda::DriverApi blocking = device::cuda::FakeDriverFunctions();
  blocking.MemcpyAsync = CopyBehindABlockedOperation;
  Settings settings{.patience = 200ms};
  settings.driver = [&](int rank) {
    return rank == 1 ? &blocking : &device::cuda::FakeDriverFunctions();
  };
  Communicators communicators = MakeRanks(3, std::move(settings));
  blocked_ends = false;
  block_next = true;
  std::atomic<int> ended = 0;
  OnNcclRanks(std::move(communicators), [&](Communicator& communicator) {
    const Status error = SumOf(communicator);
    EXPECT_EQ(error, DeadlineExceeded("rank 1: its GPU has not started AllReduce(4000 bytes of "
                                      "float32, sum) within 0.2 s after all ranks had called it; "
                                      "earlier operations block the GPU"));
    if (++ended == 2) blocked_ends = true;  // rank 1 waits for its GPU before it returns
  });
}

// Waits until the ranks have submitted this number of operations.
void AwaitOperations(int64_t count) {
  while (FakeNcclState().operations < count) std::this_thread::yield();
}

TEST(NcclCommunicator, AnAbortByAnotherThreadEndsTheOperationsOfAllRanks) {
  const Fault all = [](int, int64_t operation) {
    return operation == 1 ? NcclFault::kHang : NcclFault::kNone;
  };
  Communicators communicators = MakeRanks(3, {.fault = all});
  Communicator& first = *communicators[0];
  Thread watcher("watcher", [&] {
    AwaitOperations(3);
    EXPECT_EQ(first.CurrentWait().name, "AllReduce");
    EXPECT_EQ(first.CurrentWait().operation, 1);
    first.Abort(Unavailable("worker 7 is lost"));
    first.Abort(Internal("too late to be the reason"));
  });
  OnAllRanks(communicators, [](Communicator& communicator) {
    EXPECT_EQ(SumOf(communicator), Unavailable("worker 7 is lost"));
  });
  watcher.Join();
}

TEST(NcclCommunicator, ARankThatDiesDuringAnOperationIsNamed) {
  Sockets sockets = collectives::Connect(3);
  const int to_first = dup(sockets[2][0].get()), to_second = dup(sockets[2][1].get());
  Communicators communicators =
      MakeRanks(3, {.fault = On(2, 1, NcclFault::kHang), .sockets = std::move(sockets)});
  Thread death("death", [&] {
    AwaitOperations(3);
    for (const int fd : {to_first, to_second}) {
      shutdown(fd, SHUT_RDWR);
      close(fd);
    }
  });
  const std::vector<Status> errors = ErrorsOf(std::move(communicators));
  death.Join();
  for (const size_t survivor : {0, 1}) {
    EXPECT_EQ(errors[survivor].code(), StatusCode::kUnavailable);
    EXPECT_EQ(Message(errors[survivor]).find("rank 2 closed its connection"), 0U)
        << errors[survivor];
  }
}

TEST(NcclCommunicator, TheWaitForALateRankNamesIt) {
  Communicators communicators = MakeRanks(2);
  Communicator& first = *communicators[0];
  OnNcclRanks(std::move(communicators), [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      while (first.CurrentWait().on != 1) std::this_thread::yield();
      EXPECT_EQ(first.CurrentWait().name, "AllReduce");
      EXPECT_EQ(FakeNcclState().operations, 0) << "the GPU waits for nothing";
    }
    EXPECT_EQ(SumOf(communicator), OkStatus());
  });
}

TEST(NcclCommunicator, ARankThatHasLeftEndsTheOperationsOfTheOthers) {
  OnNcclRanks(MakeRanks(2), [](Communicator& communicator) {
    EXPECT_EQ(SumOf(communicator), OkStatus());
    if (communicator.rank() == 1) return;
    EXPECT_EQ(SumOf(communicator), Cancelled("rank 1 has left the group"));
  });
}

TEST(NcclCommunicator, DifferentVersionsAreRefusedOnAllRanks) {
  std::vector<Made> made =
      Connect(3, {.version = [](int thread) { return thread == 2 ? 22105 : 22809; }});
  for (const Made& one : made) {
    EXPECT_EQ(one.status(), made[0].status());
    EXPECT_EQ(one.status().code(), StatusCode::kFailedPrecondition);
    for (const char* version : {"2.21.5", "2.28.9"}) {
      EXPECT_NE(Message(one.status()).find(version), std::string::npos) << one.status();
    }
  }
}

TEST(NcclCommunicator, RanksThatCannotConnectGetAnError) {
  for (const Made& one : Connect(2, {.fault = On(1, 0, NcclFault::kRemoteError)})) {
    EXPECT_EQ(one.status(), Unavailable("ncclCommInitRankConfig: remote process exited or there "
                                        "was a network error"));
  }
  const Fault slow = [](int, int64_t) { return NcclFault::kSlowCall; };
  for (const Made& one : Connect(2, {.connect_patience = 100ms, .fault = slow})) {
    EXPECT_EQ(one.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(Message(one.status()).find(": NCCL has not connected the 2 ranks within 0.1 s"),
              std::string::npos)
        << one.status();
  }
  const Interrupt ends = [] { return Cancelled("the task was asked to end"); };
  for (const Made& one : Connect(2, {.fault = slow, .interrupt = ends})) {
    EXPECT_EQ(one.status(), Cancelled("the task was asked to end"));
  }
  EXPECT_EQ(FakeNcclState().communicators, 0);
}

}  // namespace
}  // namespace tfjob::collectives::nccl
