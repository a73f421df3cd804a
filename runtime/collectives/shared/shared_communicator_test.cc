#include "runtime/collectives/shared/shared_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "runtime/base/philox.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/shared/shared_operations.h"
#include "runtime/collectives/shared/shared_segment.h"
#include "runtime/collectives/test_ranks.h"

namespace tfjob::collectives {
namespace {

// Returns, for each rank, its sockets to all ranks.
std::vector<std::vector<wire::UniqueFd>> ConnectAll(int ranks) {
  std::vector<std::vector<wire::UniqueFd>> sockets(static_cast<size_t>(ranks));
  for (auto& of_rank : sockets) of_rank.resize(static_cast<size_t>(ranks));
  for (size_t a = 0; a < sockets.size(); ++a) {
    for (size_t b = a + 1; b < sockets.size(); ++b) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
      sockets[a][b] = wire::UniqueFd(ends[0]);
      sockets[b][a] = wire::UniqueFd(ends[1]);
    }
  }
  return sockets;
}

using Body = std::function<std::string(int rank, StatusOr<std::unique_ptr<Communicator>>)>;

// Runs each rank as a process that calls the function. Reports() returns the results of the calls.
class Processes {
 public:
  Processes(int ranks, const Body& body) {
    std::vector<std::vector<wire::UniqueFd>> sockets = ConnectAll(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
      const pid_t child = fork();
      if (child == 0) {
        SharedOptions options{.rank = rank,
                              .sockets = std::move(sockets[static_cast<size_t>(rank)])};
        sockets.clear();
        const std::string report = body(rank, MakeSharedCommunicator(std::move(options)));
        _exit(write(ends[1], report.data(), report.size()) == -1 ? 1 : 0);
      }
      close(ends[1]);
      children_.push_back(child);
      pipes_.emplace_back(ends[0]);
    }
  }

  std::vector<std::string> Reports() {
    std::vector<std::string> reports;
    for (size_t i = 0; i < children_.size(); ++i) {
      std::string report;
      char bytes[512];
      ssize_t got = 0;
      while ((got = read(pipes_[i].get(), bytes, sizeof bytes)) > 0) {
        report.append(bytes, static_cast<size_t>(got));
      }
      int status = 0;
      EXPECT_EQ(waitpid(children_[i], &status, 0), children_[i]);
      if (WIFSIGNALED(status)) report = StrCat("signal ", WTERMSIG(status));
      reports.push_back(report);
    }
    return reports;
  }

 private:
  std::vector<pid_t> children_;
  std::vector<wire::UniqueFd> pipes_;
};

TEST(SharedCommunicator, AllOperationsHaveTheBitsOfTheTree) {
  // The counts are close to the capacities of a notice and of a slot, and to the smallest size at
  // which spans are used in place.
  const std::vector<int64_t> counts{0, 1, 23, 200, 8193, 16'385, 150'001};
  for (const int ranks : {2, 3, 4, 5}) {
    Processes processes(ranks, [&](int, StatusOr<std::unique_ptr<Communicator>> made) {
      if (!made.ok()) return made.status().ToString();
      return CheckOperations(**made, counts);
    });
    EXPECT_EQ(processes.Reports(), std::vector<std::string>(static_cast<size_t>(ranks)));
  }
}

TEST(SharedCommunicator, TheBitsOfSumsNeverChange) {
  Processes processes(3, [&](int, StatusOr<std::unique_ptr<Communicator>> made) {
    return HashesOfSums(**made) == kHashesOfThreeRanks ? "equal" : "different";
  });
  EXPECT_EQ(processes.Reports(), std::vector<std::string>(3, "equal"));
}

TEST(SharedCommunicator, AKilledRankIsNamedAtOnce) {
  Processes processes(3, [&](int rank, StatusOr<std::unique_ptr<Communicator>> made) {
    Communicator& communicator = **made;
    const auto memory = communicator.Allocate(400'000);
    Thread killer;
    if (rank == 1) {
      killer = Thread("killer", [&communicator] {
        while (communicator.CurrentWait().operation < 200) std::this_thread::yield();
        kill(getpid(), SIGKILL);
      });
    }
    Status status;
    while (status.ok()) {
      status = communicator.AllReduce((*memory)->bytes(), DType::kFloat32, Reduction::kSum);
    }
    if (killer.joinable()) killer.Join();
    return status.ToString();
  });
  const std::string lost = "UNAVAILABLE: rank 1 is lost: its process has closed the connection";
  EXPECT_EQ(processes.Reports(), (std::vector<std::string>{lost, "signal 9", lost}));
}

TEST(SharedCommunicator, AnAbortEndsTheWaitsOfAllProcesses) {
  Processes processes(3, [&](int rank, StatusOr<std::unique_ptr<Communicator>> made) {
    if (rank == 2) (*made)->Abort(Aborted("the numbers are not finite"));
    const Status status = (*made)->Barrier();
    EXPECT_EQ((*made)->Barrier(), status);
    return status.ToString();
  });
  EXPECT_EQ(processes.Reports(),
            std::vector<std::string>(3, "ABORTED: the numbers are not finite"));
}

TEST(SharedCommunicator, AProcessThatLeavesEndsTheWaitsOfTheOthers) {
  Processes processes(2, [&](int rank, StatusOr<std::unique_ptr<Communicator>> made) {
    std::string report = (*made)->Barrier().ToString();
    if (rank == 0) report += (*made)->Barrier().ToString();
    return report;
  });
  EXPECT_EQ(processes.Reports(),
            (std::vector<std::string>{"OKCANCELLED: rank 1 has left the group", "OK"}));
}

TEST(SharedCommunicator, DifferentCallsAreAnErrorThatNamesBoth) {
  Processes processes(2, [&](int rank, StatusOr<std::unique_ptr<Communicator>> made) {
    std::vector<float> values(100'000);
    const Status status = rank == 0 ? (*made)->Broadcast(Bytes(values), 0)
                                    : (*made)->AllGather(Bytes(values), sizeof(float));
    return std::string(Message(status));
  });
  for (const std::string& report : processes.Reports()) {
    EXPECT_NE(report.find("rank 0 called Broadcast(400000 bytes, root 0)"), std::string::npos);
    EXPECT_NE(report.find("rank 1 called AllGather(400000 bytes, elements of 4)"),
              std::string::npos);
  }
}

TEST(SharedCommunicator, MemoryOutlivesTheCommunicatorAndCanBeFreedInAnyOrder) {
  Processes processes(2, [&](int rank, StatusOr<std::unique_ptr<Communicator>> made) {
    std::unique_ptr<Communicator::Memory> kept;
    for (int i = 0; i < 3; ++i) {
      auto memory = (*made)->Allocate(100'000);
      if (!memory.ok()) return memory.status().ToString();
      kept = std::move(memory).value();
      // The ranks use different allocations, and some ranks use none.
      std::vector<float> apart(25'000);
      const auto values = rank == 0 || i == 1 ? kept->bytes() : Bytes(apart);
      std::memset(values.data(), 1, values.size());
      const Status status = (*made)->AllReduce(values, DType::kInt32, Reduction::kSum);
      if (!status.ok() || values[99'999] != std::byte{2}) return status.ToString();
    }
    made->reset();
    kept->bytes()[99'999] = std::byte{3};
    return std::string("done");
  });
  EXPECT_EQ(processes.Reports(), std::vector<std::string>(2, "done"));
}

// Runs rank 1 of two ranks on a thread. The test acts as rank 0.
class HostileLeader {
 public:
  explicit HostileLeader(Duration setup_timeout = 10s, Interrupt interrupt = nullptr)
      : sockets_(ConnectAll(2)) {
    thread_ = Thread("rank 1", [this, setup_timeout, interrupt] {
      made_ = MakeSharedCommunicator({.rank = 1,
                                      .sockets = std::move(sockets_[1]),
                                      .setup_timeout = setup_timeout,
                                      .interrupt = interrupt});
    });
  }
  ~HostileLeader() {
    if (thread_.joinable()) thread_.Join();
  }

  int socket() const { return sockets_[0][1].get(); }
  Status Result() {
    thread_.Join();
    return made_.status();
  }

 private:
  std::vector<std::vector<wire::UniqueFd>> sockets_;
  StatusOr<std::unique_ptr<Communicator>> made_;
  Thread thread_;
};

constexpr size_t kNonces = 128;  // the bytes that precede the operations' memory

SegmentMessage Greeting(uint32_t rank) {
  return {.kind = SegmentMessage::kGreeting,
          .rank = rank,
          .ranks = 2,
          .bytes = kNonces + SharedOperations::MemoryBytes(2)};
}

wire::UniqueFd MemoryFile(size_t bytes, int seals) {
  wire::UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

void ExpectRefused(const SegmentMessage& message, int descriptor, const std::string& why) {
  HostileLeader leader;
  ASSERT_EQ(SendMessage(leader.socket(), message, descriptor), OkStatus());
  const Status status = leader.Result();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.ToString().find(why), std::string::npos) << status.ToString();
}

TEST(SharedCommunicator, RefusesMemoryAndGreetingsThatAreNotAsExpected) {
  const size_t bytes = Greeting(0).bytes;
  const wire::UniqueFd good = MemoryFile(bytes, F_SEAL_SHRINK);
  ExpectRefused(Greeting(0), -1, "rank 0: it sent no shared memory");
  ExpectRefused(Greeting(0), MemoryFile(bytes, 0).get(), "sealed against shrinking");
  ExpectRefused(Greeting(0), MemoryFile(bytes - 1, F_SEAL_SHRINK).get(), "expected");
  const wire::UniqueFd folder(open("/", O_RDONLY | O_CLOEXEC));
  ExpectRefused(Greeting(0), folder.get(), "sealed against shrinking");
  ExpectRefused(Greeting(1), good.get(), "it is rank 1 of 2");
  SegmentMessage message = Greeting(0);
  message.ranks = 3;
  ExpectRefused(message, good.get(), "it is rank 0 of 3");
  message = Greeting(0);
  message.magic ^= 1;
  ExpectRefused(message, good.get(), "expected a greeting");
  message = Greeting(0);
  message.nonce[3] = std::byte{7};  // the memory has a zero there
  ExpectRefused(message, good.get(), "must be processes of one machine");
}

TEST(SharedCommunicator, AClosedSocketOrASilentPeerEndsTheIntroduction) {
  std::vector<std::vector<wire::UniqueFd>> sockets = ConnectAll(2);
  EXPECT_EQ(MakeSharedCommunicator(
                {.rank = 1, .sockets = std::move(sockets[1]), .setup_timeout = Duration(1)})
                .status()
                .code(),
            StatusCode::kDeadlineExceeded);
  sockets = ConnectAll(2);
  sockets[1].clear();
  const Status closed =
      MakeSharedCommunicator({.rank = 0, .sockets = std::move(sockets[0])}).status();
  EXPECT_EQ(closed.code(), StatusCode::kUnavailable);
  EXPECT_NE(closed.ToString().find("rank 1"), std::string::npos) << closed.ToString();
}

TEST(SharedCommunicator, ALeaderThatDoesNotBeginEndsTheIntroduction) {
  HostileLeader leader(20ms);
  const wire::UniqueFd memory = MemoryFile(Greeting(0).bytes, F_SEAL_SHRINK);
  // The nonce in the greeting is zero, and so is the memory where this rank looks for it.
  ASSERT_EQ(SendMessage(leader.socket(), Greeting(0), memory.get()), OkStatus());
  EXPECT_EQ(leader.Result(),
            DeadlineExceeded("shared memory: rank 0 did not begin to exchange in time"));
}

TEST(SharedCommunicator, AnInterruptEndsTheWaitForALeaderThatDoesNotBegin) {
  int asked = 0;
  HostileLeader leader(60s, [&] { return ++asked > 10 ? Aborted("interrupted") : OkStatus(); });
  const wire::UniqueFd memory = MemoryFile(Greeting(0).bytes, F_SEAL_SHRINK);
  ASSERT_EQ(SendMessage(leader.socket(), Greeting(0), memory.get()), OkStatus());
  EXPECT_EQ(leader.Result(), Aborted("shared memory: interrupted"));
}

TEST(SharedCommunicator, NeedsUnixSockets) {
  std::vector<wire::UniqueFd> sockets(2);
  EXPECT_EQ(MakeSharedCommunicator({.rank = 0, .sockets = std::move(sockets)}).status().code(),
            StatusCode::kInvalidArgument);
  sockets.resize(2);
  sockets[1] = wire::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(Message(MakeSharedCommunicator({.rank = 0, .sockets = std::move(sockets)}).status()),
            "the socket to rank 1: expected a connected unix socket");
}

int OpenDescriptors() {
  int open = 0;
  for (int fd = 0; fd < 256; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

TEST(SharedCommunicator, FurtherDescriptorsOfAMessageAreClosed) {
  const std::vector<std::vector<wire::UniqueFd>> sockets = ConnectAll(2);
  const int before = OpenDescriptors();
  SegmentMessage message;
  iovec data{.iov_base = &message, .iov_len = sizeof message};
  alignas(cmsghdr) char buffer[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr header{
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = buffer, .msg_controllen = sizeof buffer};
  cmsghdr* const control = CMSG_FIRSTHDR(&header);
  *control = {
      .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  const int two[2] = {0, 1};
  std::memcpy(CMSG_DATA(control), two, sizeof two);
  ASSERT_EQ(sendmsg(sockets[0][1].get(), &header, 0), static_cast<ssize_t>(sizeof message));
  {
    const auto received = ReceiveMessage(sockets[1][0].get(), RealClock().Monotonic() + 10s);
    ASSERT_TRUE(received.ok());
    EXPECT_TRUE(received->descriptor.valid());
    EXPECT_EQ(OpenDescriptors(), before + 1);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

// Acts as rank 1 of two ranks. Uses the memory that rank 0 has sent.
class HostileRank {
 public:
  explicit HostileRank(wire::UniqueFd socket) : socket_(std::move(socket)) {
    auto received = ReceiveMessage(socket_.get(), RealClock().Monotonic() + 10s);
    EXPECT_TRUE(received.ok());
    segment_ = *Segment::Open(std::move(received->descriptor), Greeting(0).bytes);
    EXPECT_EQ(SendMessage(socket_.get(), Greeting(1), -1), OkStatus());
    board_.emplace(segment_->bytes().data() + kNonces, 1, 2, Sharing::kProcesses);
    board_->Begin();
    EXPECT_EQ(board_->Meet(), OkStatus());
  }

  // Returns the 32-bit words of the control part: the notices, the reasons and the abort word.
  std::span<std::atomic<uint32_t>> words() {
    return {reinterpret_cast<std::atomic<uint32_t>*>(segment_->bytes().data() + kNonces),
            Board::Bytes(2) / sizeof(uint32_t)};
  }
  Board& board() { return *board_; }
  void Close() { socket_.Close(); }

 private:
  wire::UniqueFd socket_;
  std::unique_ptr<Segment> segment_;
  std::optional<Board> board_;
};

// Runs the function for rank 0, while the test acts as rank 1.
class Victim {
 public:
  explicit Victim(const std::function<void(Communicator&)>& body) : sockets_(ConnectAll(2)) {
    thread_ = Thread("rank 0", [this, body] {
      auto made = MakeSharedCommunicator({.rank = 0, .sockets = std::move(sockets_[0])});
      ASSERT_TRUE(made.ok()) << made.status();
      body(**made);
    });
  }
  ~Victim() { thread_.Join(); }
  wire::UniqueFd TakePeer() { return std::move(sockets_[1][0]); }

 private:
  std::vector<std::vector<wire::UniqueFd>> sockets_;
  Thread thread_;
};

// Waits until rank 0 has posted its notice for this round, counted from 0. Returns false if rank 0
// has aborted instead.
bool AwaitNotice(Board& board, uint32_t round) {
  while (board.Of(0).rounds / Notice::kOneRound < round / 2 + 1) {
    if (board.aborted()) return false;
    std::this_thread::yield();
  }
  return true;
}

// Posts the same call as rank 0, but with random values and sometimes with one wrong word.
void PostAlmostTheSame(Board& board, PhiloxStream& random) {
  const Notice& other = board.Of(0);
  Notice& own = board.Own();
  own.call = other.call.load();
  own.bytes = other.bytes.load();
  own.element = other.element.load();
  own.allocation = other.allocation.load();
  own.offset = other.offset.load();
  for (std::byte& value : own.values) value = static_cast<std::byte>(random.Next());
  const std::array<std::atomic<uint64_t>*, 4> words{&own.bytes, &own.element, &own.allocation,
                                                    &own.offset};
  const uint64_t word = random.Next() | uint64_t{random.Next()} << 32;
  switch (random.Next() % 32) {
    case 0:
      own.call = static_cast<uint32_t>(word);
      break;
    case 1:
      *words[random.Next() % words.size()] = word;
      break;
    case 2:
    case 3:
    case 4:
      own.bytes = word % (1 << 20);  // possible for an AllGatherVariable
      break;
    default:
      break;
  }
}

TEST(SharedCommunicator, HostileWordsNeitherCrashNorHang) {
  std::atomic<int64_t> operations = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Victim victim([&](Communicator& communicator) {
      std::vector<float> values(20'000);
      std::vector<std::byte> all;
      std::vector<size_t> sizes;
      const auto memory = communicator.Allocate(100'000);
      Status status = memory.status();
      while (status.ok()) {
        status = communicator.AllGatherVariable({}, 1 << 20, all, sizes);
        if (status.ok()) {
          status = communicator.ReduceScatter(Bytes(values), DType::kFloat32, Reduction::kSum);
        }
        if (status.ok()) {
          status = communicator.AllReduce((*memory)->bytes(), DType::kFloat32, Reduction::kSum);
        }
        if (status.ok()) status = communicator.AllToAll(Bytes(values), 4);
      }
      EXPECT_LE(all.size(), size_t{1} << 20);
      operations += communicator.CurrentWait().operation;
    });
    HostileRank rank(victim.TakePeer());
    PhiloxStream random(PhiloxKey(seed, "words"));
    for (uint32_t round = 1; round < 200; ++round) {
      rank.board().Begin();
      if (!AwaitNotice(rank.board(), round)) break;
      PostAlmostTheSame(rank.board(), random);
      if (!rank.board().Meet().ok()) break;
    }
    // Then write random words into the notices and reasons of both ranks, and into the abort word.
    for (int i = 0; i < 1000; ++i) {
      rank.words()[random.Next() % rank.words().size()] = static_cast<uint32_t>(random.Next());
    }
    rank.Close();
  }
  EXPECT_GT(operations, 500);
}

// Rank 0 calls AllReduce over allocated memory. Rank 1 posts a notice that refers to `offset` in
// `allocation`. Expects rank 0 to fail with an error that contains `why`.
void ExpectDamage(uint64_t allocation, uint64_t offset, const std::string& why) {
  Victim victim([&](Communicator& communicator) {
    const auto memory = communicator.Allocate(100'000);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const Status status =
        communicator.AllReduce((*memory)->bytes(), DType::kFloat32, Reduction::kSum);
    EXPECT_NE(status.ToString().find(why), std::string::npos) << status.ToString();
  });
  HostileRank rank(victim.TakePeer());
  Board& board = rank.board();
  for (int call = 0; call < 2; ++call) {
    board.Begin();
    Notice& own = board.Own();
    ASSERT_TRUE(AwaitNotice(board, static_cast<uint32_t>(call) + 1));
    own.call = board.Of(0).call.load();
    own.bytes = 100'000;
    own.element = board.Of(0).element.load();
    own.allocation = call == 0 ? 0 : allocation;
    own.offset = offset;
    (void)board.Meet();
  }
  // Wait until the victim has noticed the damage.
  while (!board.aborted()) std::this_thread::yield();
}

TEST(SharedCommunicator, PlacesOutsideTheMemoryAreAnError) {
  ExpectDamage(1, 4096, "expected a range of that allocation");
  ExpectDamage(1, ~uint64_t{0} - 3, "expected a range of that allocation");
  ExpectDamage(1, 2, "aligned to its elements");
}

}  // namespace
}  // namespace tfjob::collectives
