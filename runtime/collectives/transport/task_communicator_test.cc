// Tests which transport the ranks of a generation choose. The ranks are threads, processes in other
// network namespaces, or hostile peers.
#include "runtime/collectives/transport/task_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/test_ranks.h"
#include "runtime/collectives/transport/machine_sockets.h"
#include "runtime/collectives/transport/rank_rounds.h"

namespace tfjob::collectives {
namespace {

using Sockets = std::vector<std::vector<wire::UniqueFd>>;

// Creates the data sockets: sockets[a][b] is connected to sockets[b][a].
Sockets ConnectRanks(size_t ranks) {
  Sockets sockets(ranks);
  for (auto& row : sockets) row.resize(ranks);
  for (size_t a = 0; a < ranks; ++a) {
    for (size_t b = a + 1; b < ranks; ++b) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
      sockets[a][b] = wire::UniqueFd(ends[0]);
      sockets[b][a] = wire::UniqueFd(ends[1]);
    }
  }
  return sockets;
}

using Made = StatusOr<std::unique_ptr<Communicator>>;

// Creates the communicators of all ranks, each on its own thread.
std::vector<Made> MakeAll(size_t ranks, TransportChoice transport,
                          SumOrder order = SumOrder::kTree) {
  Sockets sockets = ConnectRanks(ranks);
  std::vector<Made> made(ranks);
  std::vector<Thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      made[rank] = MakeTaskCommunicator({.rank = static_cast<int>(rank),
                                         .sockets = std::move(sockets[rank]),
                                         .transport = transport,
                                         .order = order});
    });
  }
  for (Thread& thread : threads) thread.Join();
  return made;
}

void ExpectToWorkOver(std::string_view transport, std::vector<Made> made) {
  Communicators communicators;
  for (Made& one : made) {
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ((*one)->transport(), transport);
    communicators.push_back(*std::move(one));
  }
  OnAllRanks(communicators, [](Communicator& communicator) {
    EXPECT_EQ(CheckOperations(communicator, {0, 5, 20'000}), "");
  });
}

TEST(TaskCommunicator, RanksOfOneMachineShareMemory) {
  for (const size_t ranks : {2, 3, 4}) {
    ExpectToWorkOver("shared memory", MakeAll(ranks, TransportChoice::kAuto));
  }
  ExpectToWorkOver("shared memory", MakeAll(2, TransportChoice::kSharedMemory));
}

TEST(TaskCommunicator, TcpCanBeForced) {
  ExpectToWorkOver("tcp", MakeAll(3, TransportChoice::kTcp));
}

TEST(TaskCommunicator, ARingUsesSockets) {
  for (const TransportChoice transport : {TransportChoice::kAuto, TransportChoice::kTcp}) {
    Communicators communicators;
    for (Made& one : MakeAll(3, transport, SumOrder::kRing)) {
      ASSERT_TRUE(one.ok()) << one.status();
      EXPECT_EQ((*one)->transport(), "tcp");
      communicators.push_back(*std::move(one));
    }
    std::vector<std::vector<float>> sums(3);
    OnAllRanks(communicators, [&](Communicator& communicator) {
      const auto rank = static_cast<size_t>(communicator.rank());
      // The first value is (1e8 + −1e8) + 1 in the order of the ring, (1 + 1e8) + −1e8 in the tree.
      constexpr float kFirst[] = {1.F, 1e8F, -1e8F};
      sums[rank] = {kFirst[rank], 1.F, 2.F};
      EXPECT_EQ(communicator.AllReduce(Bytes(sums[rank]), DType::kFloat32, Reduction::kSum),
                OkStatus());
    });
    for (const std::vector<float>& sum : sums) {
      EXPECT_EQ(sum, (std::vector<float>{1.F, 3.F, 6.F}));
    }
  }
  for (const Made& one : MakeAll(2, TransportChoice::kSharedMemory, SumOrder::kRing)) {
    EXPECT_EQ(one.status(),
              InvalidArgument("the tasks cannot add around a ring through shared memory, where the "
                              "order is that of the tree: use tcp"));
  }
}

TEST(TaskCommunicator, ASingleRankNeedsNoTransport) {
  ExpectToWorkOver("tcp", MakeAll(1, TransportChoice::kSharedMemory));
}

// The last rank runs in a process with its own network namespace, as a pod does. Returns the report
// of each rank.
std::vector<std::string> InTwoNamespaces(
    size_t ranks, const std::function<std::string(size_t rank, Sockets&)>& body) {
  Sockets sockets = ConnectRanks(ranks);
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string report = "no namespace";
    if (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
      report = body(ranks - 1, sockets);
    }
    _exit(write(ends[1], report.data(), report.size()) == -1 ? 1 : 0);
  }
  close(ends[1]);
  sockets[ranks - 1].clear();  // only the process uses these
  std::vector<std::string> reports(ranks);
  std::vector<Thread> threads;
  for (size_t rank = 0; rank + 1 < ranks; ++rank) {
    threads.emplace_back("rank", [&, rank] { reports[rank] = body(rank, sockets); });
  }
  for (Thread& thread : threads) thread.Join();
  char bytes[512];
  const ssize_t got = read(ends[0], bytes, sizeof bytes);
  reports.back() = std::string(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return reports;
}

std::function<std::string(size_t rank, Sockets&)> MakeAndSum(TransportChoice transport) {
  return [transport](size_t rank, Sockets& sockets) {
    auto made = MakeTaskCommunicator({.rank = static_cast<int>(rank),
                                      .sockets = std::move(sockets[rank]),
                                      .transport = transport});
    if (!made.ok()) return made.status().ToString();
    std::vector<float> values(300'000, 1.f);  // enough for two levels
    const Status status = (*made)->AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
    if (!status.ok()) return status.ToString();
    return StrCat((*made)->transport(), " ", values[999]);
  };
}

TEST(TaskCommunicator, RanksInOtherNetworkNamespacesUseTcp) {
  const auto reports = InTwoNamespaces(2, MakeAndSum(TransportChoice::kAuto));
  if (reports.back() == "no namespace") GTEST_SKIP() << "this system allows no namespaces";
  EXPECT_EQ(reports, std::vector<std::string>(2, "tcp 2"));
}

// The ranks 0 and 1 share memory, and rank 2 knows this.
TEST(TaskCommunicator, RanksInOneNetworkNamespaceShareMemoryNextToOthers) {
  const auto reports = InTwoNamespaces(3, MakeAndSum(TransportChoice::kAuto));
  if (reports.back() == "no namespace") GTEST_SKIP() << "this system allows no namespaces";
  EXPECT_EQ(reports, std::vector<std::string>(3, "shared memory and tcp 3"));
}

TEST(TaskCommunicator, SharedMemoryThatIsForcedFailsOnAllRanksAlike) {
  const auto reports = InTwoNamespaces(3, MakeAndSum(TransportChoice::kSharedMemory));
  if (reports.back() == "no namespace") GTEST_SKIP() << "this system allows no namespaces";
  EXPECT_EQ(reports,
            std::vector<std::string>(
                3,
                "FAILED_PRECONDITION: the tasks cannot exchange through shared memory: rank 0: "
                "dialling rank 2: its unix socket is not in this network namespace"));
}

// Runs rank 1 of two ranks. The test acts as rank 0.
class Victim {
 public:
  explicit Victim(Duration patience, TransportChoice transport = TransportChoice::kAuto,
                  Interrupt interrupt = nullptr)
      : sockets_(ConnectRanks(2)), rounds_(0, sockets_[0]) {
    thread_ = Thread("rank 1", [this, patience, transport, interrupt] {
      made_ = MakeTaskCommunicator({.rank = 1,
                                    .sockets = std::move(sockets_[1]),
                                    .transport = transport,
                                    .patience = patience,
                                    .interrupt = interrupt});
    });
  }
  ~Victim() {
    if (thread_.joinable()) thread_.Join();
  }

  // Acts as rank 0 up to the point where rank 1 waits for the connection. Returns rank 1's offer.
  MachineOffer Offer() {
    EXPECT_TRUE(Agree(OkStatus()).ok());
    MachineOffer own{};
    own.number.fill(std::byte{7});
    const auto offers = rounds_.Exchange(std::vector<MachineOffer>(2, own), 10s);
    EXPECT_TRUE(offers.ok()) << offers.status();
    EXPECT_TRUE(Agree(OkStatus()).ok());
    MachineRow row;
    row.reached[1] = Reach::kReached;
    EXPECT_TRUE(rounds_.Exchange(std::vector<MachineRow>(2, row), 10s).ok());
    EXPECT_TRUE(rounds_.Exchange(std::vector<MachineList>(2), 10s).ok());
    return (*offers)[1];
  }
  Status Agree(const Status& own) {
    const auto verdict = rounds_.Agree(own, 10s);
    return verdict.ok() ? verdict->status : verdict.status();
  }
  void Close() { sockets_[0].clear(); }
  Made Result() {
    thread_.Join();
    return std::move(made_);
  }
  std::string Transport() {
    Made made = Result();
    return made.ok() ? std::string((*made)->transport()) : made.status().ToString();
  }

 private:
  Sockets sockets_;
  RankRounds rounds_;
  Made made_;
  Thread thread_;
};

bool IsClosedByPeer(int fd) {
  EXPECT_TRUE(wire::AwaitSocket(fd, POLLIN, RealClock().Monotonic() + 10s));
  char byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

wire::UniqueFd DialWith(const MachineOffer& offer, uint32_t rank,
                        int bytes = sizeof(MachineProof)) {
  auto dialled = DialOnMachine(offer.name);
  EXPECT_TRUE(dialled.ok()) << dialled.status();
  const MachineProof proof{.rank = rank, .number = offer.number};
  EXPECT_EQ(send(dialled->get(), &proof, static_cast<size_t>(bytes), 0), bytes);
  return *std::move(dialled);
}

TEST(TaskCommunicator, StrangersAreRefused) {
  Victim victim(10s);
  const MachineOffer offer = victim.Offer();
  MachineOffer wrong = offer;
  wrong.number[5] ^= std::byte{1};
  const wire::UniqueFd stranger = DialWith(wrong, 0);
  EXPECT_TRUE(IsClosedByPeer(stranger.get()));
  const wire::UniqueFd own_rank = DialWith(offer, 1), no_rank = DialWith(offer, 9);
  EXPECT_TRUE(IsClosedByPeer(own_rank.get()));
  EXPECT_TRUE(IsClosedByPeer(no_rank.get()));
  // A hundred callers that send nothing, or only a part of a proof, do not keep a rank from
  // connecting.
  std::vector<wire::UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(DialWith(offer, 0, i % 20));
  wire::UniqueFd rank = DialWith(offer, 0);
  MachineProof answer;
  ASSERT_TRUE(wire::AwaitSocket(rank.get(), POLLIN, RealClock().Monotonic() + 10s));
  ASSERT_EQ(recv(rank.get(), &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.rank, 1U);
  EXPECT_EQ(answer.number[3], std::byte{7});
  EXPECT_TRUE(victim.Agree(OkStatus()).ok());
  rank.Close();
  EXPECT_FALSE(victim.Agree(Internal("no memory")).ok());
  EXPECT_EQ(victim.Transport(), "tcp");
}

TEST(TaskCommunicator, APeerThatDoesNotComeLeavesTcp) {
  Victim victim(20ms);
  victim.Offer();
  EXPECT_EQ(victim.Agree(OkStatus()),
            DeadlineExceeded("rank 1: rank 0 did not prove itself in time"));
  EXPECT_EQ(victim.Transport(), "tcp");
}

TEST(TaskCommunicator, APeerThatSendsNoMemoryLeavesTcp) {
  Victim victim(20ms);
  const wire::UniqueFd rank = DialWith(victim.Offer(), 0);
  EXPECT_TRUE(victim.Agree(OkStatus()).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(victim.Agree(OkStatus())));
  EXPECT_EQ(victim.Transport(), "tcp");
}

TEST(TaskCommunicator, APeerThatIsSilentOrGoneEndsTheGeneration) {
  {
    Victim victim(20ms);
    EXPECT_EQ(victim.Result().status(), Unavailable("rank 0: it did not answer in time"));
  }
  Victim victim(10s);
  victim.Offer();
  victim.Close();
  // Rank 1 stops waiting as soon as the connection is closed.
  const Status status = victim.Result().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(TaskCommunicator, SharedMemoryThatIsForcedAndOnlyLateMayComeInAnotherAttempt) {
  Victim victim(20ms, TransportChoice::kSharedMemory);
  victim.Offer();
  EXPECT_TRUE(absl::IsDeadlineExceeded(victim.Agree(OkStatus())));
  EXPECT_EQ(victim.Result().status(),
            Unavailable("the tasks cannot exchange through shared memory: rank 1: rank 0 did not "
                        "prove itself in time"));
}

// An interrupt ends every wait at once, regardless of what the rank waits for.
TEST(TaskCommunicator, AnInterruptEndsEveryWait) {
  for (int stage = 0; stage < 4; ++stage) {
    std::atomic<bool> interrupted = false;
    const auto began = SteadyNow();
    Victim victim(60s, TransportChoice::kAuto,
                  [&] { return interrupted ? Aborted("interrupted") : OkStatus(); });
    wire::UniqueFd rank;
    if (stage > 0) {
      const MachineOffer offer = victim.Offer();  // rank 1 then waits for rank 0 to dial
      if (stage > 1) rank = DialWith(offer, 0);
      // Rank 1 then waits for the memory.
      if (stage > 2) {
        EXPECT_TRUE(victim.Agree(OkStatus()).ok());
      }
    }
    interrupted = true;
    EXPECT_EQ(victim.Result().status(), Aborted("interrupted")) << stage;
    EXPECT_LT(SteadyNow() - began, 30s) << stage;
  }
}

TEST(TaskCommunicator, OtherBytesThanAVerdictAreAnError) {
  Sockets sockets = ConnectRanks(2);
  const std::string noise(4096, 'x');
  ASSERT_EQ(send(sockets[1][0].get(), noise.data(), noise.size(), 0), 4096);
  const auto made = MakeTaskCommunicator({.rank = 0, .sockets = std::move(sockets[0])});
  EXPECT_EQ(made.status(), Unavailable("rank 1 sent other bytes than a verdict"));
}

}  // namespace
}  // namespace tfjob::collectives
