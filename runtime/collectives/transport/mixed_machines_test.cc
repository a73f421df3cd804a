// Tests groups whose ranks run on several machines, some of which run several ranks. The ranks are
// threads with real data sockets and real shared memory; the test says which of them may find each
// other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/plan/hosts.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/collectives/test_ranks.h"
#include "runtime/collectives/transport/machine_sockets.h"
#include "runtime/collectives/transport/task_communicator.h"

namespace tfjob::collectives {
namespace {

using Made = StatusOr<std::unique_ptr<Communicator>>;

// Creates the communicators of all ranks, each on its own thread.
std::vector<Made> MakeOver(Sockets sockets, const Hosts& hosts, const Costs& costs = {},
                           TransportChoice transport = TransportChoice::kAuto) {
  std::vector<Made> made(sockets.size());
  std::vector<Thread> threads;
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    threads.emplace_back("rank", [&, rank] {
      made[rank] = MakeTaskCommunicator(
          {.rank = static_cast<int>(rank),
           .sockets = std::move(sockets[rank]),
           .transport = transport,
           .may_share = [&](int a, int b) { return hosts.MachineOf(a) == hosts.MachineOf(b); },
           .costs = costs});
    });
  }
  for (Thread& thread : threads) thread.Join();
  return made;
}

Communicators Taken(std::vector<Made> made) {
  Communicators communicators;
  for (Made& one : made) {
    EXPECT_TRUE(one.ok()) << one.status();
    if (one.ok()) communicators.push_back(*std::move(one));
  }
  return communicators;
}

Communicators MakeOn(const Hosts& hosts, const Costs& costs = {}) {
  return Taken(
      MakeOver(Connect(static_cast<size_t>(hosts.ranks()), SocketKind::kTcp), hosts, costs));
}

// Costs that make every AllReduce take place in two levels if this is possible, in several chunks
// and pieces.
constexpr Costs kTwoLevels{.round = 0,
                           .frame = 0,
                           .byte = 1,
                           .reduced_byte = 0,
                           .signal = 0,
                           .shared_byte = 0,
                           .piece_bytes = 2 << 10,
                           .chunk_bytes = 16 << 10};

TEST(MixedMachines, AllOperationsHaveTheBitsOfTheTree) {
  for (const Hosts& hosts : {Hosts({0, 0, 1}), Hosts({0, 1, 0, 1}), Hosts({0, 0, 1, 1}),
                             Hosts({0, 1, 1, 2, 2, 0}), Hosts({0, 0, 0, 1, 1})}) {
    ASSERT_EQ(ChooseAlgorithm({.operation = Operation::kAllReduce,
                               .bytes = 16,
                               .element_bytes = 4,
                               .dtype = DType::kFloat32},
                              hosts.ranks(), kTwoLevels, hosts),
              Algorithm::kTwoLevels);
    const Communicators communicators = MakeOn(hosts, kTwoLevels);
    OnAllRanks(communicators, [&](Communicator& communicator) {
      EXPECT_EQ(communicator.transport(), "shared memory and tcp");
      // In most types, the largest span has several chunks.
      EXPECT_EQ(CheckOperations(communicator, {0, 1, 9001}), "") << ToString(hosts);
    });
  }
}

TEST(MixedMachines, ThePlacementDoesNotChangeTheBits) {
  for (const Hosts& hosts : {Hosts({0, 0, 1}), Hosts({0, 1, 1}), Hosts({0, 1, 0})}) {
    for (const Costs& costs : {Costs(), kTwoLevels}) {
      OnAllRanks(MakeOn(hosts, costs), [](Communicator& communicator) {
        EXPECT_EQ(HashesOfSums(communicator), kHashesOfThreeRanks);
      });
    }
  }
}

TEST(MixedMachines, RanksThatAllRunAloneUseTcp) {
  for (const auto& communicator : MakeOn(Hosts({0, 1, 2}))) {
    EXPECT_EQ(communicator->transport(), "tcp");
  }
}

TEST(MixedMachines, RanksOfOneMachineUseOnlySharedMemory) {
  for (const auto& communicator : MakeOn(Hosts({0, 0, 0}))) {
    EXPECT_EQ(communicator->transport(), "shared memory");
  }
}

TEST(MixedMachines, SharedMemoryCannotBeForced) {
  for (const Made& made : MakeOver(Connect(3, SocketKind::kTcp), Hosts({0, 1, 0}), {},
                                   TransportChoice::kSharedMemory)) {
    EXPECT_EQ(
        made.status(),
        FailedPrecondition("the tasks cannot exchange through shared memory: rank 0: dialling "
                           "rank 1: its unix socket is not in this network namespace"));
  }
}

// A rank's neighbours may use an allocation that the rank itself has already destroyed.
TEST(MixedMachines, AnAllocationIsUsableUntilTheLastRankDestroysIt) {
  OnAllRanks(MakeOn(Hosts({0, 0, 1}), kTwoLevels), [](Communicator& communicator) {
    std::vector<float> elsewhere(1000, 1.F);
    auto memory = communicator.Allocate(4000);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const std::span<float> allocated(reinterpret_cast<float*>((*memory)->bytes().data()), 1000);
    std::ranges::fill(allocated, 1.F);
    const bool destroys = communicator.rank() == 0;
    if (destroys) memory->reset();
    ASSERT_EQ(
        communicator.AllReduce(destroys ? Bytes(elsewhere) : std::as_writable_bytes(allocated),
                               DType::kFloat32, Reduction::kSum),
        OkStatus());
    EXPECT_EQ(destroys ? elsewhere[999] : allocated[999], 3.F);
  });
}

TEST(MixedMachines, KeepTheOtherPromisesOfTransports) {
  const MakeCommunicators make = [](int ranks) {
    std::vector<int> machines(static_cast<size_t>(ranks), 0);
    machines.back() = 1;
    return MakeOn(Hosts(machines), kTwoLevels);
  };
  ExpectWrongArgumentsEndTheOperationsOfAllRanks(make);
  ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(make);
  ExpectDifferentLimitsAreAnError(make);
  ExpectReasonsArePrintable(make);
  ExpectMemoryOutlivesTheCommunicator(make);
}

// The dead rank is a neighbour of some ranks, and runs on a different machine from others. Returns
// the errors of all ranks.
std::vector<Status> WithADeath(size_t victim, size_t count, int64_t after_operations) {
  const Hosts hosts({0, 0, 1, 1});
  Sockets sockets = Connect(4, SocketKind::kTcp);
  std::vector<wire::UniqueFd> copies;  // of the victim's sockets
  for (const wire::UniqueFd& socket : sockets[victim]) {
    if (socket.valid()) copies.emplace_back(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  }
  const Communicators communicators = Taken(MakeOver(std::move(sockets), hosts, kTwoLevels));
  Thread death("death", [&] {
    const auto& other = communicators[victim == 0 ? 1 : 0];
    while (other->CurrentWait().operation < after_operations) std::this_thread::yield();
    for (const wire::UniqueFd& socket : copies) shutdown(socket.get(), SHUT_RDWR);
  });
  std::vector<Status> results(4);
  OnAllRanks(communicators, [&](Communicator& communicator) {
    std::vector<float> values(count);
    Status status;
    while (status.ok()) {
      status = communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
    }
    results[static_cast<size_t>(communicator.rank())] = status;
  });
  death.Join();
  return results;
}

TEST(MixedMachines, ADeathInTheMiddleEndsAllRanksAndIsNamed) {
  for (const size_t victim : {0, 3}) {
    for (const size_t count : {size_t{10}, size_t{20'000}}) {
      int named = 0;
      const std::vector<Status> results = WithADeath(victim, count, 20);
      for (size_t rank = 0; rank < results.size(); ++rank) {
        EXPECT_EQ(results[rank].code(), StatusCode::kUnavailable) << results[rank];
        if (rank == victim) continue;
        EXPECT_NE(Message(results[rank]).find("closed its connection"), std::string::npos)
            << results[rank];
        if (Message(results[rank]).starts_with(StrCat("rank ", victim, " "))) ++named;
      }
      EXPECT_GE(named, 1);
    }
  }
}

TEST(MixedMachines, AreWhatAllRanksCanReach) {
  constexpr Reach kYes = Reach::kReached, kNo = Reach::kOtherNamespace, kOff = Reach::kNotTried;
  EXPECT_EQ(MachinesOf({{kOff, kYes, kNo}, {kOff, kOff, kNo}, {kOff, kOff, kOff}}),
            Hosts({0, 0, 1}));
  // Rank 2 reaches rank 1, but not rank 0, which rank 1 reaches.
  EXPECT_EQ(MachinesOf({{kOff, kYes, kNo}, {kOff, kOff, kYes}, {kOff, kOff, kOff}}),
            Hosts({0, 0, 1}));
  EXPECT_EQ(MachinesOf({{kOff, kNo, kYes, kNo},
                        {kOff, kOff, Reach::kOtherUser, kYes},
                        {kOff, kOff, kOff, kNo},
                        {kOff, kOff, kOff, kOff}}),
            Hosts({0, 1, 0, 1}));
}

// Rank 0 claims that the other ranks run on other machines than they actually do.
TEST(MixedMachines, ARankWithOtherMachinesLeavesTcp) {
  Sockets sockets = Connect(2, SocketKind::kTcp);
  RankRounds rounds(0, sockets[0]);
  Made made;
  Thread thread("rank 1", [&] {
    made = MakeTaskCommunicator(
        {.rank = 1, .sockets = std::move(sockets[1]), .patience = Duration(1s)});
  });
  EXPECT_TRUE(rounds.Agree(OkStatus(), 10s).ok());
  EXPECT_TRUE(rounds.Exchange(std::vector<MachineOffer>(2), 10s).ok());
  EXPECT_TRUE(rounds.Agree(OkStatus(), 10s).ok());
  MachineRow row;
  row.reached[1] = Reach::kReached;
  EXPECT_TRUE(rounds.Exchange(std::vector<MachineRow>(2, row), 10s).ok());
  MachineList list;
  list.machine_of[1] = 1;
  EXPECT_TRUE(rounds.Exchange(std::vector<MachineList>(2, list), 10s).ok());
  const auto verdict = rounds.Agree(OkStatus(), 10s);
  sockets[0].clear();
  thread.Join();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->status, Internal("rank 1: rank 0 has found other machines of the ranks"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->transport(), "tcp");
}

}  // namespace
}  // namespace tfjob::collectives
