// Tests how the client recovers from servers that are lost, slow or rolled back.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>

#include "runtime/ps/client/client.h"
#include "runtime/ps/client/scripted_server.h"
#include "runtime/ps/test_network.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {
namespace {

// Memory that delays the first thread that touches it: after Guard, that thread waits until
// `released` is set, but at most 10 s. Only one such object may exist at a time.
class GuardedPages {
 public:
  explicit GuardedPages(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    current_ = this;
    struct sigaction action{};
    action.sa_handler = [](int) { current_->OnTouch(); };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~GuardedPages() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, bytes_);
  }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(memory_), bytes_}; }
  void Guard() { mprotect(memory_, bytes_, PROT_NONE); }
  std::atomic<bool> touched = false, released = false;

 private:
  // Calls only functions that a signal handler may call.
  void OnTouch() {
    if (touched.exchange(true)) abort();
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (int i = 0; i < 10'000 && !released; ++i) nanosleep(&millisecond, nullptr);
    mprotect(memory_, bytes_, PROT_READ | PROT_WRITE);
  }
  static inline GuardedPages* current_ = nullptr;
  const size_t bytes_;
  void* memory_;
  struct sigaction before_{};
};

// Two servers with one variable each.
class TwoServersTest : public testing::Test {
 protected:
  TwoServersTest() {
    Definition definition;
    definition.state.variables = {{.name = "large", .shape = {kLarge}},
                                  {.name = "small", .shape = {1}}};
    definition.mode = Mode::kSynchronous;
    definition.max_shard_bytes = int64_t{1} << 40;
    for (int i = 0; i < 2; ++i) {
      servers_[i].body =
          StrCat(R"({"fingerprint":")", Fingerprint(definition), R"(","servers":2})");
      servers_[i].contribution = i == 0 ? 0 : sizeof(float);
      servers_[i].script[wire::kPull] = {{ValuesOf(i, {.step = 3}, 3)}};
      connector_.Listen(Address(i), kParameterService, Task("ps", i), servers_[i]);
    }
    options_ = {.servers = {Address(0), Address(1)},
                .identity = Task("worker", 1),
                .definition = definition,
                .patience = 20s,
                .connector = &connector_};
  }
  ~TwoServersTest() override {
    client_.reset();
    for (int i = 0; i < 2; ++i) connector_.Close(Address(i));
  }
  static std::string Address(int server) { return StrCat("ps-", server); }
  static Answer ValuesOf(int server, rpc::FrameHeader header, float value) {
    header.type = wire::kValues;
    header.flags |= wire::kLast;
    return {header,
            {{.index = static_cast<uint32_t>(server),
              .bytes = Floats(server == 0 ? kLarge : 1, value)}}};
  }
  StatusOr<StepResult> Join() {
    client_ = *ParameterClient::Create(options_);
    return client_->WaitReady(values_);
  }
  StatusOr<StepResult> Step() {
    // Send no gradient for the large variable, because a scripted server grants no further credit.
    const std::vector<std::span<const std::byte>> gradients = {{}, values_[1]};
    return client_->Exchange(gradients, values_);
  }

  static constexpr int64_t kLarge = 4096;
  rpc::PipeConnector connector_;
  ScriptedServer servers_[2];
  ClientOptions options_;
  std::unique_ptr<ParameterClient> client_;
  GuardedPages pages_{kLarge * sizeof(float)};
  const std::span<float> large_{reinterpret_cast<float*>(pages_.bytes().data()), kLarge};
  float small_[1] = {};
  std::vector<std::span<std::byte>> values_ = {pages_.bytes(),
                                               std::as_writable_bytes(std::span(small_))};
};

// The servers were rolled back. While the client still reads the first server's values of the old
// state, the second one reports the new state, so the client restarts the step.
TEST_F(TwoServersTest, ValuesThatAreBeingReadDuringARollbackDoNotEndTheNextExchange) {
  ASSERT_TRUE(Join().ok());
  const rpc::FrameHeader refused{.type = wire::kRefused,
                                 .value = static_cast<int64_t>(StatusCode::kAborted)};
  servers_[0].script[wire::kPush] = {{{refused, {{.bytes = "rolled back"}}}}};
  servers_[1].script[wire::kPush] = {{}};
  servers_[0].late = ValuesOf(0, {.step = 4}, 4);
  servers_[1].answers_queries = &pages_.touched;
  servers_[1].pulled = &pages_.released;
  for (int i = 0; i < 2; ++i) {
    servers_[i].state.value = 8;  // another epoch
    servers_[i].script[wire::kPull] = {{ValuesOf(i, {.step = 9}, 9)}};
  }
  pages_.Guard();
  const StatusOr<StepResult> result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->rolled_back);
  EXPECT_EQ(result->global_step, 9);
  EXPECT_TRUE(std::ranges::all_of(large_, [](float value) { return value == 9; }));
  EXPECT_EQ(small_[0], 9);
}

TEST_F(TwoServersTest, ATokenSaysNothingOfServersThatHaveNotAnswered) {
  ASSERT_TRUE(Join().ok());
  servers_[0].script[wire::kPush] = {{ValuesOf(0, {.step = 4}, 4)},
                                     {ValuesOf(0, {.flags = wire::kAgain, .step = 4}, 4)}};
  servers_[1].script[wire::kPush] = {
      {ValuesOf(1, {.flags = wire::kDropped, .step = 4, .value = 3}, 4)}, {}};
  StatusOr<StepResult> result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->dropped);
  EXPECT_EQ(result->staleness, 3);
  result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->again);
  EXPECT_FALSE(result->dropped) << "that was the step before";
  EXPECT_EQ(result->staleness, 0);
  EXPECT_EQ(result->global_step, 4);
}

// ps 1 answers before the connection to ps 0 is lost, so the values from ps 1 may be much older
// than the step that ps 0 finally reports.
TEST_F(TwoServersTest, ValuesThatPs0DidNotDateAreTooStaleForAGradient) {
  options_.max_staleness = 1;
  options_.definition.mode = Mode::kAsynchronous;
  for (int i = 0; i < 2; ++i) {
    servers_[i].body =
        StrCat(R"({"fingerprint":")", Fingerprint(options_.definition), R"(","servers":2})");
  }
  ASSERT_TRUE(Join().ok());
  const Answer without_values{{.type = wire::kValues, .flags = wire::kLast, .step = 4}, {}};
  servers_[0].script[wire::kPush] = {
      {without_values}, {ValuesOf(0, {.step = 1000}, 4)}, {ValuesOf(0, {.step = 1001}, 6)}};
  servers_[0].script[wire::kPull] = {{ValuesOf(0, {.step = 1000}, 5)}};
  servers_[1].script[wire::kPush] = {{ValuesOf(1, {.step = 4}, 4)}, {ValuesOf(1, {.step = 5}, 6)}};
  servers_[1].script[wire::kPull] = {{ValuesOf(1, {.step = 4}, 5)}};
  StatusOr<StepResult> result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->dropped) << "both servers have used the gradient";
  EXPECT_EQ(result->global_step, 1000);
  for (ScriptedServer& server : servers_) server.state.step = 1000;
  result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->dropped);
  EXPECT_EQ(small_[0], 5);
  result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->dropped) << "both servers' values were read together";
  EXPECT_EQ(result->global_step, 1001);
}

// Connects to pipes after a delay, or fails after the delay, as if the hosts answered late.
class LateConnector : public rpc::Connector {
 public:
  LateConnector(rpc::Connector& inner, Duration delay) : inner_(inner), delay_(delay) {}
  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    Mutex mutex;
    CondVar never;
    {
      const auto end = std::chrono::steady_clock::now() + delay_.load();
      MutexLock lock(mutex);
      while (never.WaitUntil(mutex, end)) {
      }
    }
    return inner_.Connect(address, service, self, timeout);
  }

 private:
  rpc::Connector& inner_;
  const std::atomic<Duration> delay_;
};

// Runs twelve real servers behind a network on which every connection attempt takes some time.
class ManyServersTest : public testing::Test {
 protected:
  static constexpr int kServers = 12;

  void Listen() {
    for (int i = 0; i < kServers; ++i) {
      servers_.push_back(
          *ParameterServer::Create({.identity = Task("ps", i), .connector = &pipes_}));
      pipes_.Listen(Address(i), kParameterService, Task("ps", i), *servers_.back());
    }
  }
  ~ManyServersTest() override {
    for (int i = 0; i < kServers; ++i) pipes_.Close(Address(i));
  }
  static std::string Address(int server) { return StrCat("ps-", server); }
  ClientOptions Options(rpc::Connector& connector) {
    ClientOptions options{.identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [this] { return InitialState(definition_, 100); },
                          .patience = 20s,
                          .connector = &connector};
    for (int i = 0; i < kServers; ++i) options.servers.push_back(Address(i));
    return options;
  }

  const Definition definition_ = TwoVariables();
  rpc::PipeConnector pipes_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
};

// Each server gets 1 MB, which takes 0.4 s.
TEST_F(ManyServersTest, AreFilledAtTheSameTime) {
  Definition large = definition_;
  large.state.variables = {{.name = "w", .shape = {kServers, 250'000}}};
  large.max_shard_bytes = 1'000'000;
  Listen();
  SlowConnector slow(pipes_, 2.5e6);
  Trainer chief(large);
  ClientOptions options = Options(slow);
  options.provide_state = [&] { return InitialState(large, 100); };
  ASSERT_EQ(chief.Join(options), OkStatus());
  for (const auto& server : servers_) EXPECT_EQ(server->State().bytes, 1'000'000);
  const state::Snapshot other = InitialState(large, 7);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(chief.client->Restore(other), OkStatus());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s) << "one after the other takes 4.8 s";
}

TEST_F(ManyServersTest, AreConnectedAtTheSameTime) {
  Listen();
  LateConnector late(pipes_, 400ms);
  Trainer chief(definition_);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(chief.Join(Options(late)), OkStatus());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s) << "one after the other takes 4.8 s";
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.Value(), 99.5f);
  StatusOr<state::Snapshot> copy = chief.client->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->global_step, 1);
  EXPECT_EQ(chief.client->Finish(), OkStatus());
  chief.client.reset();
}

TEST_F(ManyServersTest, AreReportedWhileNoneOfThemAnswers) {
  LateConnector late(pipes_, 1s);
  Trainer chief(definition_);
  ClientOptions options = Options(late);
  options.report_every = 200ms;
  options.patience = 900ms;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(chief.Join(options).code(), StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_TRUE(chief.events.Has(state::PeerEvent::Kind::kWaiting))
      << "reported during the first attempt to connect";
}

// Reads all frames and answers none.
struct MuteServer : rpc::StreamHandler {
  Status Admit(const rpc::Identity&) override { return OkStatus(); }
  void Serve(const rpc::Identity&, const std::string&, rpc::Transport& transport) override {
    rpc::IncomingFrame frame;
    while (transport.Read(frame).ok()) asked = true;
  }
  std::atomic<bool> asked = false;
};

TEST(Stop, EndsTheWaitForAServerThatDoesNotAnswer) {
  rpc::PipeConnector pipes;
  MuteServer server;
  pipes.Listen("here", kParameterService, Task("ps", 0), server);
  {
    Trainer worker(TwoVariables());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(worker
                  .Join({.servers = {"here"},
                         .identity = Task("worker", 1),
                         .patience = 60s,
                         .stop_requested = [&] { return server.asked.load(); },
                         .connector = &pipes})
                  .code(),
              StatusCode::kCancelled);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "a request takes up to 10 s";
  }
  pipes.Close("here");
}

// There are more shards, most of them empty, than a frame may have segments.
TEST(ManyShards, AreSentInSeveralFrames) {
  rpc::PipeConnector pipes;
  auto ps = *ParameterServer::Create({.identity = Task("ps", 0), .connector = &pipes});
  pipes.Listen("here", kParameterService, Task("ps", 0), *ps);
  Definition definition = TwoVariables();
  definition.state.variables = {{.name = "w", .shape = {70'000}}};
  definition.max_shard_bytes = 4;
  {
    Trainer chief(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 60s,
                          .connector = &pipes}),
              OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_EQ(chief.Value(), 2.5f);
    StatusOr<state::Snapshot> copy = chief.client->TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->variables[0].value.data<float>()[69'999], 2.5f);
  }
  pipes.Close("here");
}

// Expects the client to give up on a server that accepts the definition and then stops reading, and
// on a server that does not send the requested copy.
TEST(Stalls, ATransferThatDoesNotMoveIsGivenUp) {
  rpc::PipeConnector pipes;
  ScriptedServer server;
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {1}}};
  server.body = StrCat(R"({"fingerprint":")", Fingerprint(definition), R"(","servers":1})");
  server.script[wire::kPull] = {
      {{{.type = wire::kValues, .flags = wire::kLast}, {{.bytes = Floats(1, 1)}}}}};
  server.script[wire::kSnapshot] = {
      {},
      {{{.type = wire::kShard}, {{.bytes = Floats(1, 7)}}}, {{.type = wire::kSnapshotEnd}, {{}}}}};
  pipes.Listen("here", kParameterService, Task("ps", 0), server);
  {
    Trainer chief(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 20s,
                          .report_every = 50ms,
                          .stall_after = 300ms,
                          .connector = &pipes}),
              OkStatus());
    StatusOr<state::Snapshot> copy = chief.client->TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->variables[0].value.data<float>()[0], 7);
    EXPECT_TRUE(chief.events.Said("chief 0 copies ps 0 (here) (0 of 0 MB)"));
  }
  pipes.Close("here");
}

}  // namespace
}  // namespace tfjob::ps
