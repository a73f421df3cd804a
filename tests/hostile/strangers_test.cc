// Attacks the port of a parameter server while its job trains. During every attack, the job must
// keep training, use at most 64 MiB more memory than without attacks, and log attacks once per
// source.
#include <arpa/inet.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/progress/service.h"
#include "runtime/ps/forged_frames.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/identity.h"
#include "runtime/rpc/socket_connector.h"
#include "runtime/wire/dial.h"
#include "tests/sanitized.h"

namespace tfjob::hostile {
namespace {

using wire::UniqueFd;

constexpr char kStranger[] = "127.0.0.2";   // the source address of most attacks
constexpr char kNeighbour[] = "127.0.0.1";  // the tasks' address, which some attackers share
constexpr int64_t kMegabyte = 1 << 20;
constexpr int kIdle = 2000;

Duration Now() {
  return RealClock().Monotonic();
}

wire::JobKey Key(char digit) {
  return *wire::JobKey::Parse(std::string(64, digit));
}

// Returns the value of the line `name` in /proc/self/status, in bytes.
int64_t MemoryLine(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

sockaddr_in SocketAddress(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

// Runs a job that has a key, one server, and a chief that trains on its own thread.
class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::internal::CaptureStderr();
    const rpc::Identity self = ps::Task("ps", 0);
    ps_ = *ps::ParameterServer::Create(
        {.identity = self, .may_have = [](const std::string& type, int32_t) {
           return type == "chief" || type == "worker";
         }});
    server_ = *rpc::Server::Start({.host = "127.0.0.1",
                                   .identity = self,
                                   .credentials = credentials_,
                                   .services = {progress_.get()},
                                   .streams = {{"parameters", ps_.get()}}});
    ps::ClientOptions options{.servers = {Address()},
                              .identity = ps::Task("chief", 0),
                              .chief = true,
                              .patience = 30s,
                              .credentials = credentials_};
    options.provide_state = [this] { return ps::InitialState(definition_, 100); };
    ASSERT_EQ(chief_.Join(std::move(options)), OkStatus());
    thread_ = std::thread([this] {
      while (!stop_ && chief_.Train().ok()) ++steps_;
    });
    AwaitSteps(50);
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    memory_ = MemoryLine("VmHWM:");
  }

  void TearDown() override {
    AwaitSteps(50);
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    const int64_t grown = MemoryLine("VmHWM:") - memory_;
    if (!kSanitized && !large_messages_) {
      EXPECT_LT(grown, 64 * kMegabyte);
    }
    if (!impersonated_) {
      EXPECT_FALSE(chief_.events.Has(state::PeerEvent::Kind::kLost));
    }
    chief_.client.reset();
    server_.reset();
    log_ += testing::internal::GetCapturedStderr();
  }

  std::string Address() const { return StrCat("127.0.0.1:", server_->port()); }
  void AwaitSteps(int64_t more) {
    const int64_t goal = steps_ + more;
    const Duration deadline = Now() + 20s;
    while (steps_ < goal && Now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_GE(steps_, goal) << "the job does not train on";
  }
  // Stops capturing the log, and expects exactly one line about messages from `source`. This line
  // must contain `why`.
  void ExpectLoggedOnce(const std::string& why, const std::string& source = kStranger) {
    log_ = testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
    size_t lines = 0;
    const std::string from = StrCat("from=", source);
    for (size_t at = log_.find(from); at != std::string::npos; at = log_.find(from, at + 1))
      ++lines;
    EXPECT_EQ(lines, 1u) << log_;
    EXPECT_NE(log_.find(why), std::string::npos) << log_;
  }

  // Connects from kStranger, which is not the address of a task.
  UniqueFd Connect() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in self = SocketAddress(kStranger, 0);
    const sockaddr_in peer = SocketAddress("127.0.0.1", server_->port());
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self), 0);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer), 0);
    return fd;
  }
  static void Say(const UniqueFd& fd, std::string_view bytes) {
    (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Reads until the task closes the connection, and returns the bytes. Fails if the task does not
  // close it within 20 s.
  static std::string HearToTheEnd(const UniqueFd& fd) {
    std::string heard;
    char buffer[256];
    const Duration deadline = Now() + 20s;
    while (wire::AwaitSocket(fd.get(), POLLIN, deadline)) {
      const ssize_t got = recv(fd.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return heard;
      heard.append(buffer, static_cast<size_t>(got));
    }
    ADD_FAILURE() << "the connection stays open";
    return heard;
  }
  // Reads and returns exactly `count` bytes.
  static std::string Hear(const UniqueFd& fd, size_t count) {
    std::string heard(count, '\0');
    EXPECT_EQ(recv(fd.get(), heard.data(), count, MSG_WAITALL), static_cast<ssize_t>(count));
    return heard;
  }
  Status ConnectAs(const rpc::Identity& identity, const rpc::Credentials& credentials) const {
    return rpc::MakeSocketConnector(credentials)
        ->Connect(Address(), "parameters", identity, 10s)
        .status();
  }

  // Acts as a training task, and sends impossible contributions and definitions.
  void SendForgedFrames(const rpc::Identity& as) const;
  // Acts as the chief, and sends a definition. Returns false if the real chief reconnected, and so
  // displaced this connection, before the answer arrived.
  bool SendForgedDefinition(const ps::Definition& definition) const;

  rpc::Credentials credentials_{.key = Key('a')};
  const ps::Definition definition_ = ps::TwoVariables();
  std::unique_ptr<ps::ParameterServer> ps_;
  // Like every task, the server also serves gRPC.
  const std::unique_ptr<grpc::Service> progress_ =
      progress::MakeProgressService([] { return progress::Progress(); });
  std::unique_ptr<rpc::Server> server_;
  ps::Trainer chief_{definition_};
  std::atomic<int64_t> steps_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
  int64_t memory_ = 0;
  bool large_messages_ = false;  // the test itself sends large messages
  bool impersonated_ = false;    // the attacker replaces the chief's connections
  std::string log_;
};

void HostileTest::SendForgedFrames(const rpc::Identity& as) const {
  const auto connector = rpc::MakeSocketConnector(credentials_);
  ps::RawPeer peer(*connector, as, Address());
  ASSERT_EQ(peer.admitted, OkStatus());
  const ps::Received state = peer.Ask({.type = ps::wire::kQuery, .flags = ps::wire::kBrief});
  ASSERT_EQ(state.header.type, ps::wire::kState);
  const int64_t epoch = state.header.value;
  const size_t floats = static_cast<size_t>(definition_.max_shard_bytes) / sizeof(float);
  uint64_t sequence = 0;
  for (const std::vector<ps::Bytes>& parts : ps::ImpossibleContributions(floats)) {
    EXPECT_EQ(peer.CodeOf(ps::Push(++sequence, 0, epoch), parts), StatusCode::kInvalidArgument)
        << sequence;
  }
  for (const int64_t step : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(peer.CodeOf(ps::Push(++sequence, step, epoch)), StatusCode::kInvalidArgument);
  }
  for (const uint16_t type : {ps::wire::kDefine, ps::wire::kFilled, ps::wire::kFinish}) {
    EXPECT_EQ(peer.CodeOf({.type = type, .value = epoch + 1}), StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(peer.CodeOf({.type = 999}), StatusCode::kUnimplemented);
}

bool HostileTest::SendForgedDefinition(const ps::Definition& definition) const {
  const auto connector = rpc::MakeSocketConnector(credentials_);
  // The peer claims to be the chief's current process. A peer that claimed to be a later process
  // would replace the chief permanently; only the key protects against this.
  ps::RawPeer peer(*connector, ps::Task("chief", 0), Address());
  const int64_t epoch = RealClock().Now().time_since_epoch().count();
  const ps::Received answer =
      peer.Ask({.type = ps::wire::kDefine, .sequence = 1, .value = epoch},
               {{.bytes = Serialize(ps::Assignment{definition, {Address()}})}});
  if (answer.header.type == 0) return false;
  EXPECT_EQ(static_cast<StatusCode>(answer.header.value), StatusCode::kInvalidArgument);
  return true;
}

// A job whose tasks have no key accepts any peer.
class HostileWithoutKeyTest : public HostileTest {
 protected:
  HostileWithoutKeyTest() { credentials_ = {}; }
};

TEST_F(HostileTest, ForgedFramesOfPeersWithTheKey) {
  SendForgedFrames(ps::Task("worker", 0));
  SendForgedFrames(ps::Task("worker", 77));  // the job has no such task, but this server allows it
  ExpectLoggedOnce("refused what a peer sent", kNeighbour);
}

TEST_F(HostileWithoutKeyTest, ForgedFrames) {
  SendForgedFrames(ps::Task("worker", 0));
  SendForgedFrames(ps::Task("worker", 77));
  ExpectLoggedOnce("refused what a peer sent", kNeighbour);
}

TEST_F(HostileWithoutKeyTest, ForgedDefinitionsOfWhoClaimsToBeTheChief) {
  impersonated_ = true;
  for (const ps::Definition& definition : ps::ImpossibleDefinitions()) {
    const Duration deadline = Now() + 20s;
    while (!SendForgedDefinition(definition)) ASSERT_LT(Now(), deadline);
  }
  ExpectLoggedOnce("refused what a peer sent", kNeighbour);
}

TEST_F(HostileTest, Garbage) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const UniqueFd stranger = Connect();
    std::string garbage(1 + random() % 3000, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    Say(stranger, garbage);
    EXPECT_EQ(HearToTheEnd(stranger), "");
  }
  ExpectLoggedOnce("not a TFJob peer (got ");
}

TEST_F(HostileTest, OtherProtocols) {
  for (const char* hello : {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                            "\x16\x03\x01\x02\x00\x01", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const UniqueFd stranger = Connect();
    Say(stranger, hello);
    EXPECT_EQ(HearToTheEnd(stranger), "");
  }
  ExpectLoggedOnce("not a TFJob peer (got \\\"PRI * HT\\\")");
}

// Silent, partial and slow hellos have the same time limit, so one test of 5 s covers all of them.
TEST_F(HostileTest, SilentAndHalfAndSlowHellosAreClosedAfterFiveSeconds) {
  const Duration begin = Now();
  UniqueFd silent = Connect(), half = Connect(), slow = Connect();
  Say(half, std::string("TFJH\1\1\x22\0\1\1", 10));
  const std::string open = std::string("TFJH\1\1\x22\0\1\1", 10) + std::string(32, 'n');
  size_t said = 0;
  // Send one byte every 200 ms, so the whole hello would take longer than allowed.
  while (said < open.size() && !wire::AwaitSocket(slow.get(), POLLIN, Now() + 200ms)) {
    Say(slow, open.substr(said++, 1));
  }
  EXPECT_EQ(HearToTheEnd(slow), "");
  EXPECT_EQ(HearToTheEnd(half), "");
  EXPECT_EQ(HearToTheEnd(silent), "");
  EXPECT_LT(said, open.size());
  EXPECT_GE(Now() - begin, 4s);
  EXPECT_LT(Now() - begin, 9s);
  ExpectLoggedOnce("no proof within 5s");
}

TEST_F(HostileTest, TwoThousandIdleConnections) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < kIdle; ++i) strangers.push_back(Connect());
  // All connections except the newest 256 are closed long before the time limit.
  for (int i = 0; i < kIdle - 256; ++i) {
    EXPECT_EQ(HearToTheEnd(strangers[static_cast<size_t>(i)]), "");
  }
  EXPECT_EQ(ConnectAs(ps::Task("worker", 0), credentials_), OkStatus());
  ExpectLoggedOnce("too many unproven connections");
}

TEST_F(HostileTest, PortScan) {
  for (int i = 0; i < 500; ++i) Connect();
  // Once a later connection has been answered, all 500 connections have been processed.
  const UniqueFd last = Connect();
  Say(last, "?");
  EXPECT_EQ(HearToTheEnd(last), "");
  ExpectLoggedOnce("it sent nothing");
}

TEST_F(HostileTest, ReplayedHello) {
  wire::CallerHello caller(&*credentials_.key, "", wire::Purpose::kGrpc, wire::NewNonce());
  const std::string open = caller.TakeOutput();
  UniqueFd peer = Connect();
  Say(peer, open);
  ASSERT_EQ(caller.Feed(Hear(peer, caller.wanted())), OkStatus());
  ASSERT_EQ(caller.Feed(Hear(peer, caller.wanted())), OkStatus());
  const std::string claims = caller.TakeOutput();
  ASSERT_FALSE(claims.empty());
  // A stranger has intercepted both messages, and replays them.
  const UniqueFd stranger = Connect();
  Say(stranger, open);
  const std::string challenge = Hear(stranger, 41);
  Say(stranger, claims);
  EXPECT_EQ(HearToTheEnd(stranger), std::string("TFJH\1\5\1\0\4", 9));
  // The original peer is still accepted.
  Say(peer, claims);
  while (!caller.done()) ASSERT_EQ(caller.Feed(Hear(peer, caller.wanted())), OkStatus());
  ExpectLoggedOnce("the peer cannot prove the job's key");
}

TEST_F(HostileTest, WrongKeyAndNoKey) {
  const Status wrong = ConnectAs(ps::Task("worker", 0), {.key = Key('b')});
  EXPECT_EQ(wrong.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(wrong).find("uid"), std::string_view::npos) << wrong;
  const Status none = ConnectAs(ps::Task("worker", 0), {});
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(none).find("set TFJOB_KEY"), std::string_view::npos) << none;
  ExpectLoggedOnce("the peer cannot prove the job's key", kNeighbour);
}

TEST_F(HostileTest, WrongJobAndWrongRole) {
  rpc::Identity other = ps::Task("worker", 0);
  other.job_uid = "another";
  const Status job = ConnectAs(other, credentials_);
  EXPECT_EQ(job.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(job).find("the caller is worker 0 of job 'another'"), std::string_view::npos)
      << job;
  EXPECT_FALSE(ConnectAs(ps::Task("gambler", 0), credentials_).ok());
  ExpectLoggedOnce("the caller is worker 0 of job 'another'", kNeighbour);
}

TEST_F(HostileTest, OversizedHelloAndOversizedFrame) {
  const UniqueFd stranger = Connect();
  Say(stranger, std::string("TFJH\1\1\xFF\xFF", 8) + std::string(100'000, 'x'));
  EXPECT_EQ(HearToTheEnd(stranger), "");
  large_messages_ = true;
  const auto connector = rpc::MakeSocketConnector(credentials_);
  ps::RawPeer peer(*connector, ps::Task("worker", 0), Address());
  ASSERT_EQ(peer.admitted, OkStatus());
  const std::vector<ps::Bytes> parts = {{.bytes = std::string(rpc::kMaxFrameBytes, 'x')}};
  (void)peer.Send({.type = ps::wire::kDefine}, parts);
  EXPECT_EQ(peer.Next().header.type, 0) << "the stream goes on";
  ExpectLoggedOnce("not a TFJob peer");
}

TEST_F(HostileTest, GarbageInsteadOfFramesOfPeersWithTheKey) {
  const rpc::Identity worker = ps::Task("worker", 0);
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    const StatusOr<rpc::DataConnection> connection =
        rpc::DialData(Address(), rpc::kStreamChannel, worker, credentials_, 10s);
    ASSERT_TRUE(connection.ok()) << connection.status();
    std::string garbage(rpc::kHeaderBytes + random() % 3000, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    garbage[7] = '\x7f';  // an impossible number of segments, so the server does not wait for them
    Say(connection->socket, garbage);
    EXPECT_NE(HearToTheEnd(connection->socket).find("segments"), std::string::npos);
  }
  ExpectLoggedOnce("closed a stream", kNeighbour);
}

// Each stream belongs to a different task, announces a frame with the largest possible table of
// segments, and then is silent. The server must not allocate memory for the tables (TearDown checks
// this).
TEST_F(HostileTest, AnnouncementsOfLargeFramesByPeersWithTheKey) {
  std::string announced(rpc::kHeaderBytes, '\0');
  announced[0] = '\xF1';
  announced[1] = '\xFF';
  announced[6] = 1;  // 65,536 segments
  std::vector<rpc::DataConnection> open;
  for (int i = 0; i < 300; ++i) {
    StatusOr<rpc::DataConnection> connection =
        rpc::DialData(Address(), rpc::kStreamChannel, ps::Task("worker", i), credentials_, 10s);
    ASSERT_TRUE(connection.ok()) << connection.status();
    Say(connection->socket, announced);
    open.push_back(*std::move(connection));
  }
  for (const rpc::DataConnection& connection : open) {
    EXPECT_NE(HearToTheEnd(connection.socket).find("segments"), std::string::npos);
  }
}

TEST_F(HostileTest, StreamsOfTasksThatTheJobDoesNotHave) {
  // Once the second connection has been answered, the first one has been logged.
  for (int i = 0; i < 2; ++i) {
    const StatusOr<rpc::DataConnection> connection =
        rpc::DialData(Address(), rpc::kStreamChannel, ps::Task("evaluator", 0), credentials_, 10s);
    EXPECT_EQ(connection.status().code(), StatusCode::kFailedPrecondition);
  }
  ExpectLoggedOnce("the job has no task evaluator 0", kNeighbour);
}

}  // namespace
}  // namespace tfjob::hostile
