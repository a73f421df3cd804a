// Attacks a group of tasks that exchange gradients: at their ports, as a process that has the job's
// key or has recorded a hello, and as a member whose data sockets carry anything but its part of
// the exchange. Every attack must end in an error that names the attacker, or change nothing. No
// rank may crash, wait forever, or apply a part of a step.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/endpoint/test_tasks.h"
#include "runtime/collectives/membership/socket_intake.h"
#include "runtime/collectives/socket/socket_frame.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/handshake.h"
#include "runtime/wire/hello.h"
#include "tests/sanitized.h"

namespace tfjob::collectives {
namespace {

// ---- Members whose sockets carry anything.

using Frames = std::vector<std::byte>;

constexpr int kHonest = 2;   // ranks 0 and 1
constexpr int kHostile = 2;  // the hostile rank
constexpr char kHostileName[] = "rank 2 (worker 1)";
constexpr size_t kCount = 64;  // values in each of a step's two buckets

// One honest rank. A step adds the sums of two buckets to the variables, once both are complete.
struct HonestRank {
  std::unique_ptr<SocketCommunicator> communicator;
  std::vector<float> variables = std::vector<float>(2 * kCount);
  int steps = 0;
  Status error;
  std::atomic<bool> ended = false;

  Status Step(size_t count) {
    std::vector<float> gradients(2 * count, 1.F);
    for (const size_t first : {size_t{0}, count}) {
      RETURN_IF_ERROR(communicator->AllReduce(
          std::as_writable_bytes(std::span(gradients).subspan(first, count)), DType::kFloat32,
          Reduction::kSum));
    }
    for (size_t i = 0; i < variables.size(); ++i) variables[i] += gradients[i];
    ++steps;
    return OkStatus();
  }
};

// Trains two honest ranks for at most three steps with a rank that behaves like `hostile`, which
// gets its sockets to them. Closes those sockets when `hostile` returns.
std::vector<HonestRank> TrainWith(
    const std::function<void(std::vector<wire::UniqueFd>& sockets, std::vector<HonestRank>& ranks)>&
        hostile,
    size_t count = kCount) {
  Sockets sockets = Connect(kHonest + 1, SocketKind::kTcp);
  std::vector<HonestRank> ranks(kHonest);
  for (int rank = 0; rank < kHonest; ++rank) {
    auto& own = sockets[static_cast<size_t>(rank)];
    ranks[static_cast<size_t>(rank)].communicator =
        *MakeSocketCommunicator({.rank = rank,
                                 .sockets = std::move(own),
                                 .tasks = {"chief 0", "worker 0", "worker 1"},
                                 .announce_after = 20ms});
  }
  std::vector<Thread> threads;
  for (HonestRank& rank : ranks) {
    threads.emplace_back("rank", [&rank, count] {
      while (rank.steps < 3 && rank.error.ok()) rank.error = rank.Step(count);
      rank.ended = true;
    });
  }
  hostile(sockets[kHostile], ranks);
  sockets[kHostile].clear();
  for (Thread& thread : threads) thread.Join();
  return ranks;
}

Call BucketCall() {
  return {.operation = Operation::kAllReduce,
          .bytes = kCount * sizeof(float),
          .element_bytes = sizeof(float),
          .dtype = DType::kFloat32};
}

// The frame that the hostile rank should send to each other rank in an operation, counted from 1.
FrameHeader ExpectedHeader(int64_t operation) {
  const Call call = BucketCall();
  return {.call = call,
          .operation = operation,
          .fingerprint = MakePlan(call, 0, kHonest + 1, {}).fingerprint,
          .length = call.bytes};
}

Frames FrameOf(const FrameHeader& header, std::span<const std::byte> payload) {
  Frames frame(kFrameHeaderBytes + payload.size());
  std::ranges::copy(EncodeFrame(header), frame.begin());
  std::ranges::copy(payload, frame.begin() + kFrameHeaderBytes);
  return frame;
}

// The frames of the first operations.
Frames HonestFrames(int64_t operations) {
  const std::vector<float> values(kCount, 1.F);
  Frames frames;
  for (int64_t operation = 1; operation <= operations; ++operation) {
    const Frames frame = FrameOf(ExpectedHeader(operation), std::as_bytes(std::span(values)));
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
  return frames;
}

// Sends the bytes to both honest ranks, and then nothing more. Reads what they send until they have
// ended, because closing a socket with unread bytes could discard bytes that were sent.
void SendTo(std::vector<wire::UniqueFd>& sockets, std::span<const std::byte> bytes,
            const std::vector<HonestRank>& ranks) {
  for (int rank = 0; rank < kHonest; ++rank) {
    const int fd = sockets[static_cast<size_t>(rank)].get();
    (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
  }
  std::vector<char> read(1 << 16);
  while (!std::ranges::all_of(ranks, [](const HonestRank& rank) { return rank.ended.load(); })) {
    for (int rank = 0; rank < kHonest; ++rank) {
      const int fd = sockets[static_cast<size_t>(rank)].get();
      if (wire::AwaitSocket(fd, POLLIN, RealClock().Monotonic() + 1ms)) {
        (void)recv(fd, read.data(), read.size(), MSG_DONTWAIT);
      }
    }
  }
}

// Every rank must have applied `steps` whole steps. The ranks must have failed, and at least one
// error must name the hostile rank: the other honest rank gets either this error or that of a
// closed connection.
void ExpectNamed(const std::vector<HonestRank>& ranks, const std::string& what, int steps = 0) {
  int named = 0;
  for (const HonestRank& rank : ranks) {
    EXPECT_FALSE(rank.error.ok()) << what;
    named += Message(rank.error).find(kHostileName) != std::string_view::npos ? 1 : 0;
    EXPECT_LE(rank.steps, steps) << what;
    const auto expected = static_cast<float>(3 * rank.steps);
    EXPECT_EQ(rank.variables, std::vector<float>(2 * kCount, expected)) << what;
  }
  EXPECT_GE(named, 1) << what << ": " << ranks[0].error << "; " << ranks[1].error;
}

std::vector<HonestRank> FacedWith(std::span<const std::byte> bytes) {
  return TrainWith([&](auto& sockets, auto& ranks) { SendTo(sockets, bytes, ranks); });
}

TEST(HostileMember, AnHonestMemberTakesPart) {
  for (const HonestRank& rank : FacedWith(HonestFrames(6))) {
    EXPECT_EQ(rank.error, OkStatus());
    EXPECT_EQ(rank.variables, std::vector<float>(2 * kCount, 9.F));
  }
}

TEST(HostileMember, ACutOffFrameIsNamedAndNoStepIsHalfApplied) {
  const Frames frames = HonestFrames(2);
  for (size_t size = 0; size < frames.size(); size += kSanitized ? 37 : 5) {
    ExpectNamed(FacedWith(std::span(frames).first(size)), StrCat(size, " bytes"));
  }
  // One bucket of the second step is missing.
  ExpectNamed(FacedWith(HonestFrames(3)), "three buckets", 1);
}

TEST(HostileMember, ImpossibleHeadersAreNamed) {
  const std::vector<float> values(kCount, 1.F);
  const auto with = [&](const std::string& what, const std::function<void(FrameHeader&)>& change) {
    FrameHeader header = ExpectedHeader(1);
    change(header);
    ExpectNamed(FacedWith(FrameOf(header, std::as_bytes(std::span(values)))), what);
  };
  for (const int64_t length : {INT64_MAX, INT64_MIN, int64_t{-1}, int64_t{1} << 40, int64_t{0},
                               BucketCall().bytes + 1, BucketCall().bytes - 1}) {
    with(StrCat("length ", length), [&](FrameHeader& header) { header.length = length; });
  }
  for (const int64_t offset : {INT64_MAX, int64_t{-4}, int64_t{4}}) {
    with(StrCat("offset ", offset), [&](FrameHeader& header) { header.offset = offset; });
  }
  with("number", [](FrameHeader& header) { header.number = 0xFFFFFFFF; });
  with("fingerprint", [](FrameHeader& header) { header.fingerprint ^= 1; });
  with("another call", [](FrameHeader& header) { header.call.dtype = DType::kInt32; });
  with("more bytes", [](FrameHeader& header) { header.call.bytes *= 2; });
  with("an operation of the past", [](FrameHeader& header) { header.operation = 0; });
  with("a later operation", [](FrameHeader& header) { header.operation = 1'000'000; });
  with("a long reason", [](FrameHeader& header) {
    header.kind = FrameKind::kAbort;
    header.length = int64_t{1} << 30;
  });
}

TEST(HostileMember, ReplayedFramesAreNamed) {
  const Frames first = HonestFrames(1), both = HonestFrames(2);
  Frames replayed = first;
  replayed.insert(replayed.end(), first.begin(), first.end());
  ExpectNamed(FacedWith(replayed), "the first bucket twice");
  replayed = both;
  replayed.insert(replayed.end(), both.begin(), both.end());
  ExpectNamed(FacedWith(replayed), "the first step twice", 1);
}

TEST(HostileMember, GarbageIsNamed) {
  for (int seed = 0; seed < (kSanitized ? 50 : 300); ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "garbage"));
    Frames bytes = HonestFrames(random.Below(3));
    const int steps = bytes.size() >= HonestFrames(2).size() ? 1 : 0;
    const size_t honest = bytes.size();
    bytes.resize(honest + 1 + random.Below(5000));
    for (size_t i = honest; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.Next());
    ExpectNamed(FacedWith(bytes), StrCat("seed ", seed), steps);
  }
}

// Changed values cannot be distinguished from honest ones. Every other change must be noticed.
TEST(HostileMember, ChangedBytesNeverLeadToAPartOfAStep) {
  for (int seed = 0; seed < (kSanitized ? 50 : 300); ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "changes"));
    Frames bytes = HonestFrames(4);
    const size_t frame = kFrameHeaderBytes + static_cast<size_t>(BucketCall().bytes);
    const size_t header = random.Below(4) * frame;
    const size_t at = header + random.Below(kFrameHeaderBytes);
    bytes[at] ^= static_cast<std::byte>(1 + random.Below(255));
    ExpectNamed(FacedWith(bytes), StrCat("seed ", seed, ", byte ", at), 1);
  }
}

// The peer accepts only as many bytes as its socket can buffer. The wait names this peer, and ends
// with the reason that the thread that watches the group gives.
TEST(HostileMember, APeerThatNeverReadsIsNamedByTheWait) {
  const std::vector<HonestRank> ranks = TrainWith(
      [](auto&, std::vector<HonestRank>& honest) {
        const auto deadline = SteadyNow() + 20s;
        bool named = false;
        while (!named && SteadyNow() < deadline) {
          named = std::ranges::all_of(honest, [](const HonestRank& rank) {
            return rank.communicator->CurrentWait().on == kHostile;
          });
        }
        EXPECT_TRUE(named);
        honest[0].communicator->Abort(DeadlineExceeded(kHostileName, " does not read"));
        honest[1].communicator->Abort(DeadlineExceeded(kHostileName, " does not read"));
      },
      size_t{4} << 20);
  for (const HonestRank& rank : ranks) {
    EXPECT_EQ(rank.error, DeadlineExceeded(kHostileName, " does not read"));
    EXPECT_EQ(rank.variables, std::vector<float>(2 * kCount));
  }
}

// ---- Processes that dial the ports of a group's members.

class HostileProcess : public SocketGroupTest {
 protected:
  void SetUp() override {
    SocketGroupTest::SetUp();
    JoinAll();
    ExpectSum();
  }
  // The group must not notice the attack.
  void TearDown() override { ExpectSum(); }

  DataChannel Channel() { return {At(0).identity().incarnation, At(0).generation().number}; }
  // Dials the task with this index as `self`, with the job's key.
  Status Dial(size_t task, const rpc::Identity& self, const DataChannel& channel) {
    return rpc::DialData(tasks_[task].address, Print(channel), self, TestKey(), 5s).status();
  }
};

void ExpectRefused(const Status& status, const std::string& why) {
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(Message(status).find(why), std::string::npos) << status;
}

TEST_F(HostileProcess, ASecondConnectionOfAMemberIsRefused) {
  ExpectRefused(Dial(2, At(0).identity(), Channel()), "chief 0 is already connected");
}

TEST_F(HostileProcess, AnotherIncarnationIsRefused) {
  rpc::Identity other = At(0).identity();
  ++other.incarnation;
  ExpectRefused(Dial(1, other, Channel()), "this process of chief 0 has no connection");
}

TEST_F(HostileProcess, AMemberOfHigherRankIsRefused) {
  ExpectRefused(Dial(0, At(2).identity(), Channel()), "this process of worker 1 has no connection");
}

TEST_F(HostileProcess, AGenerationThatHasEndedIsRefused) {
  DataChannel old = Channel();
  --old.generation;
  ExpectRefused(Dial(1, At(0).identity(), old), "generation ");
}

TEST_F(HostileProcess, ConnectionsForGenerationsThatNeverBeginChangeNothing) {
  for (int i = 1; i < 20; ++i) {
    DataChannel later = Channel();
    later.generation += i;
    (void)Dial(2, At(0).identity(), later);
    later.leader_incarnation += i;
    (void)Dial(1, At(0).identity(), later);
  }
}

TEST_F(HostileProcess, TasksThatDoNotTrainAndOtherJobsAreRefused) {
  rpc::Identity stranger = At(0).identity();
  stranger.task_type = "worker";
  stranger.task_index = 9;
  ExpectRefused(Dial(1, stranger, Channel()), "worker 9");
  stranger = At(0).identity();
  stranger.job_uid = "job-b";
  EXPECT_FALSE(Dial(1, stranger, Channel()).ok());
  stranger = At(0).identity();
  ++stranger.attempt;
  EXPECT_FALSE(Dial(1, stranger, Channel()).ok());
}

// Reads what has arrived within 5 s until the peer closes the connection or `most` bytes are there.
std::string ReadSome(int fd, size_t most) {
  std::string bytes;
  const Duration deadline = RealClock().Monotonic() + 5s;
  while (bytes.size() < most && wire::AwaitSocket(fd, POLLIN, deadline)) {
    char part[512];
    const ssize_t got = recv(fd, part, std::min(sizeof part, most - bytes.size()), 0);
    if (got == 0) break;
    if (got > 0) bytes.append(part, static_cast<size_t>(got));
  }
  return bytes;
}

wire::UniqueFd ConnectTo(const std::string& address) {
  const auto place = wire::SplitAddress(address);
  sockaddr_in to{.sin_family = AF_INET,
                 .sin_port = htons(static_cast<uint16_t>(std::stoi(place->port)))};
  EXPECT_EQ(inet_pton(AF_INET, place->host.c_str(), &to.sin_addr), 1);
  wire::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

// A hello cannot be replayed: it proves the nonce that the listener has drawn for this connection.
TEST_F(HostileProcess, ARecordedHelloIsRefused) {
  const rpc::Credentials key = TestKey();
  wire::CallerHello hello(&*key.key, *rpc::ClaimsOf(At(0).identity(), Print(Channel())),
                          wire::Purpose::kData, wire::NewNonce());
  const wire::UniqueFd first = ConnectTo(tasks_[1].address);
  std::vector<std::string> recorded;
  Status ended;
  while (!hello.done() && ended.ok()) {
    if (std::string sent = hello.TakeOutput(); !sent.empty()) {
      recorded.push_back(sent);
      (void)send(first.get(), sent.data(), sent.size(), MSG_NOSIGNAL);
    }
    const std::string answer = ReadSome(first.get(), hello.wanted());
    ended = answer.empty() ? Unavailable("closed") : hello.Feed(answer);
  }
  ASSERT_GE(recorded.size(), 2U) << "the caller has sent its proof";
  ExpectRefused(ended, "already connected");  // the hello itself was right
  const wire::UniqueFd second = ConnectTo(tasks_[1].address);
  for (const std::string& message : recorded) {
    (void)send(second.get(), message.data(), message.size(), MSG_NOSIGNAL);
  }
  const std::string answer = ReadSome(second.get(), 4096);
  ASSERT_FALSE(answer.empty());
  EXPECT_EQ(answer.back(), static_cast<char>(wire::Refusal::kWrongProof));
}

}  // namespace
}  // namespace tfjob::collectives
