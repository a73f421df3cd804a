// Runs the tasks of a group in one process, with real servers and sockets on loopback.
#include "runtime/collectives/endpoint.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/collectives/socket_communicator.h"
#include "runtime/rpc/server.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

using Kind = state::PeerEvent::Kind;

// Exchanges one byte with each other rank. Has no other operation.
class BarrierCommunicator : public Communicator {
 public:
  BarrierCommunicator(int rank, std::vector<wire::UniqueFd> sockets)
      : rank_(rank), sockets_(std::move(sockets)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(sockets_.size()); }
  std::string_view transport() const override { return "test"; }
  StatusOr<std::unique_ptr<Memory>> Allocate(size_t) override { return None(); }
  Status AllReduce(std::span<std::byte>, DType, Reduction) override { return None(); }
  Status ReduceScatter(std::span<std::byte>, DType, Reduction) override { return None(); }
  Status AllGather(std::span<std::byte>, size_t) override { return None(); }
  Status AllGatherVariable(std::span<const std::byte>, size_t, std::vector<std::byte>&,
                           std::vector<size_t>&) override {
    return None();
  }
  Status Broadcast(std::span<std::byte>, int) override { return None(); }
  Status Reduce(std::span<std::byte>, DType, Reduction, int) override { return None(); }
  Status AllToAll(std::span<std::byte>, size_t) override { return None(); }

  Status Barrier() override {
    ++operation_;
    for (const wire::UniqueFd& socket : sockets_) {
      if (socket.valid()) (void)send(socket.get(), "x", 1, MSG_NOSIGNAL);
    }
    for (int other = 0; other < size(); ++other) {
      if (other == rank_) continue;
      RETURN_IF_ERROR(Hear(other));
    }
    Note(-1);
    return OkStatus();
  }

  void Abort(const Status& why) override {
    MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    for (const wire::UniqueFd& socket : sockets_) {
      if (socket.valid()) shutdown(socket.get(), SHUT_RDWR);
    }
  }
  Waiting CurrentWait() const override {
    MutexLock lock(mutex_);
    return {.operation = operation_, .name = "Barrier", .on = on_, .since = since_};
  }

 private:
  static Status None() { return Unimplemented("not in this test"); }
  void Note(int on) {
    MutexLock lock(mutex_);
    on_ = on;
    since_ = RealClock().Monotonic();
  }
  Status Hear(int other) {
    Note(other);
    const int fd = sockets_[static_cast<size_t>(other)].get();
    for (;;) {
      {
        MutexLock lock(mutex_);
        if (!why_.ok()) return why_;
      }
      if (!wire::AwaitSocket(fd, POLLIN, RealClock().Monotonic() + 10ms)) continue;
      char byte = 0;
      const ssize_t got = recv(fd, &byte, 1, 0);
      if (got == 1) return OkStatus();
      if (got == 0 || errno != EAGAIN) return Unavailable("rank ", other, " closed its socket");
    }
  }

  const int rank_;
  const std::vector<wire::UniqueFd> sockets_;
  mutable Mutex mutex_;
  std::atomic<int64_t> operation_ = 0;
  int on_ ABSL_GUARDED_BY(mutex_) = -1;
  Duration since_ ABSL_GUARDED_BY(mutex_){0};
  Status why_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<std::unique_ptr<Communicator>> MakeBarriers(int rank,
                                                     std::vector<wire::UniqueFd> sockets) {
  return std::make_unique<BarrierCommunicator>(rank, std::move(sockets));
}

StatusOr<std::unique_ptr<Communicator>> MakeSockets(int rank, std::vector<wire::UniqueFd> sockets) {
  return MakeSocketCommunicator({.rank = rank, .sockets = std::move(sockets)});
}

rpc::Credentials TestKey() {
  return {.key = *wire::JobKey::Parse(std::string(64, 'a'))};
}

int FreePort() {
  const wire::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

// A process of a task.
class TestTask {
 public:
  TestTask(std::vector<GroupTask> tasks, size_t index, int64_t incarnation,
           const CommunicatorFactory& make_communicator = MakeBarriers,
           rpc::LivenessRules liveness = {}, Duration exchange_timeout = {})
      : identity_{.job_uid = "job-a",
                  .attempt = 1,
                  .task_type = tasks[index].type,
                  .task_index = tasks[index].index,
                  .incarnation = incarnation} {
    const std::string address = tasks[index].address;
    endpoint_ = std::make_unique<Endpoint>(EndpointOptions{.identity = identity_,
                                                           .tasks = std::move(tasks),
                                                           .credentials = TestKey(),
                                                           .make_communicator = make_communicator,
                                                           .liveness = liveness,
                                                           .exchange_timeout = exchange_timeout});
    server_ = *rpc::Server::Start({.host = "127.0.0.1",
                                   .port = std::stoi(address.substr(address.find(':') + 1)),
                                   .identity = identity_,
                                   .credentials = TestKey(),
                                   .streams = {{Endpoint::kService, endpoint_.get()}},
                                   .on_data = endpoint_.get()});
    group_ = endpoint_->MakeGroup({.on_event = [this](const auto& event) { Note(event); },
                                   .stop_requested = [this] { return stop_.load(); }});
  }
  ~TestTask() {
    generation_ = {};
    group_.reset();
    server_.reset();
  }

  Group& group() { return *group_; }
  const rpc::Identity& identity() const { return identity_; }
  Generation& generation() { return generation_; }
  void Stop() { stop_ = true; }

  Status Join(int64_t step = -1, const std::string& agreement = "model: a\n") {
    StatusOr<Generation> generation = group_->Join({.step = step, .agreement = agreement});
    if (!generation.ok()) return generation.status();
    generation_ = *std::move(generation);
    return OkStatus();
  }
  // Waits up to 20 s for an event of this kind. Returns its message.
  std::string Await(Kind kind) {
    const auto deadline = SteadyNow() + 20s;
    MutexLock lock(mutex_);
    for (;;) {
      for (const auto& event : events_) {
        if (event.kind == kind) return event.message;
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return "";
    }
  }

 private:
  void Note(const state::PeerEvent& event) {
    MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  }

  const rpc::Identity identity_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::vector<state::PeerEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Group> group_;
  Generation generation_;
};

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    tasks_ = {{"chief", 0, Address()}, {"worker", 0, Address()}, {"worker", 1, Address()}};
    for (size_t i = 0; i < tasks_.size(); ++i) Start(i);
  }

  static std::string Address() { return StrCat("127.0.0.1:", FreePort()); }
  void Start(size_t i) {
    running_.resize(tasks_.size());
    running_[i].reset();
    running_[i] = std::make_unique<TestTask>(tasks_, i, ++incarnation_, make_communicator_,
                                             liveness_, exchange_timeout_);
  }
  TestTask& At(size_t i) { return *running_[i]; }

  // Runs the function for each task that runs, in parallel. Returns its results.
  template <typename Function>
  std::vector<Status> All(Function function) {
    std::vector<Status> results(running_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i]) threads.emplace_back([&, i] { results[i] = function(*running_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
  void JoinAll() {
    EXPECT_EQ(All([](TestTask& task) { return task.Join(7); }),
              std::vector<Status>(running_.size()));
  }
  void ExpectBarrier() {
    EXPECT_EQ(All([](TestTask& task) { return task.generation().communicator->Barrier(); }),
              std::vector<Status>(running_.size()));
  }

  CommunicatorFactory make_communicator_ = MakeBarriers;
  rpc::LivenessRules liveness_;
  Duration exchange_timeout_{0};  // 0: no limit
  std::vector<GroupTask> tasks_;
  std::vector<std::unique_ptr<TestTask>> running_;
  int64_t incarnation_ = 100;
};

TEST_F(EndpointTest, FormsAGenerationOfAllTasks) {
  EXPECT_EQ(All([&](TestTask& task) { return task.Join(&task == &At(0) ? -1 : 5); }),
            std::vector<Status>(3));
  for (size_t i = 0; i < 3; ++i) {
    const Generation& generation = At(i).generation();
    EXPECT_EQ(generation.number, 1);
    EXPECT_EQ(generation.rank, static_cast<int>(i));
    EXPECT_EQ(generation.source, 1);
    ASSERT_EQ(generation.members.size(), 3u);
    EXPECT_EQ(generation.members[2].task, "worker 1");
    EXPECT_EQ(generation.members[2].address, tasks_[2].address);
    EXPECT_EQ(generation.members[2].step, 5);
  }
  ExpectBarrier();
  for (const state::PeerState& peer : At(1).group().Peers()) {
    EXPECT_EQ(peer.health, state::PeerHealth::kConnected) << peer.task;
  }
}

TEST_F(EndpointTest, ALostMemberAbortsTheOthersAndItsReplacementJoins) {
  JoinAll();
  ExpectBarrier();
  running_[2].reset();
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(results[i]).find(StrCat("worker 1 (", tasks_[2].address, ")")),
              std::string::npos)
        << results[i];
  }
  Start(2);
  JoinAll();
  EXPECT_EQ(At(0).generation().number, 2);
  ExpectBarrier();
}

TEST_F(EndpointTest, TheOthersWaitForALostLeaderAndItsReplacementCountsOn) {
  JoinAll();
  running_[0].reset();
  EXPECT_NE(At(1).Await(Kind::kLost).find(StrCat("chief 0 (", tasks_[0].address, ")")),
            std::string::npos);
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  EXPECT_EQ(results[1].code(), StatusCode::kUnavailable);
  EXPECT_EQ(results[2].code(), StatusCode::kUnavailable);
  Start(0);
  JoinAll();
  EXPECT_EQ(At(2).generation().number, 2);
  ExpectBarrier();
}

TEST_F(EndpointTest, RefusesATaskThatDoesNotFit) {
  std::thread others(
      [&] { EXPECT_EQ(At(0).Join(-1, "model: a\nbatch: 8\n").code(), StatusCode::kCancelled); });
  EXPECT_EQ(At(1).Join(-1, "model: a\nbatch: 9\n"),
            FailedPrecondition("this task does not fit the group: chief 0 (", tasks_[0].address,
                               ") has 'batch: 8', worker 0 (", tasks_[1].address,
                               ") has 'batch: 9': give all tasks the same program and training "
                               "file"));
  At(0).Stop();
  others.join();
}

TEST_F(EndpointTest, AStopEndsTheWait) {
  std::thread stopper([&] {
    EXPECT_NE(At(0).Await(Kind::kConnected), "");
    At(0).Stop();
  });
  EXPECT_EQ(At(0).Join().code(), StatusCode::kCancelled);
  stopper.join();
}

TEST_F(EndpointTest, TheEndReachesThoseWhoAreThereAndThoseWhoComeLater) {
  JoinAll();
  running_[2].reset();
  EXPECT_EQ(At(0).group().Fail(state::RunFailure("the loss is NaN")), OkStatus());
  EXPECT_EQ(At(1).Join(), state::RunFailure("the loss is NaN"));
  Start(2);
  EXPECT_EQ(At(2).Join(), state::RunFailure("the loss is NaN"));
  EXPECT_EQ(At(1).group().Finish().code(), StatusCode::kFailedPrecondition);
}

TEST_F(EndpointTest, TheOthersDoNotWaitForATaskThatHasLeft) {
  JoinAll();
  EXPECT_EQ(At(2).group().Leave(), OkStatus());
  const std::unique_ptr<TestTask> left = std::move(running_[2]);
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  EXPECT_EQ(results[0].code(), StatusCode::kUnavailable);
  EXPECT_EQ(results[1].code(), StatusCode::kUnavailable);
  JoinAll();
  EXPECT_EQ(At(1).generation().members.size(), 2u);
  ExpectBarrier();
}

TEST_F(EndpointTest, TakesOneDataSocketPerMemberAndNoneOfStrangers) {
  JoinAll();
  const auto dial = [&](const rpc::Identity& as, const std::string& channel) {
    return rpc::DialData(tasks_[2].address, channel, as, TestKey(), 10s).status();
  };
  const std::string channel = StrCat("group-", At(0).identity().incarnation, "-1");
  EXPECT_EQ(dial(At(1).identity(), channel),
            FailedPrecondition(tasks_[2].address,
                               ": refused: worker 0 is already connected to worker 1 in "
                               "generation 1"));
  rpc::Identity earlier = At(1).identity();
  earlier.incarnation = 1;
  EXPECT_EQ(dial(earlier, channel).code(), StatusCode::kFailedPrecondition);
  rpc::Identity stranger = At(1).identity();
  stranger.task_index = 5;
  EXPECT_EQ(dial(stranger, channel).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(dial(At(1).identity(), "other").code(), StatusCode::kInvalidArgument);
  ExpectBarrier();  // the generation goes on
}

class StuckTest : public EndpointTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 200ms, .lease = 10s};
    EndpointTest::SetUp();
  }
};

TEST_F(StuckTest, NamesTheRankThatTheOthersWaitFor) {
  JoinAll();
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back(
        [this, i] { EXPECT_EQ(At(i).generation().communicator->Barrier(), OkStatus()); });
  }
  const std::string text = At(1).Await(Kind::kStuck);
  EXPECT_NE(text.find(StrCat("worker 1 (", tasks_[2].address,
                             ") in operation 1 (Barrier) of generation 1")),
            std::string::npos)
      << text;
  EXPECT_EQ(At(1).group().Peers()[1].health, state::PeerHealth::kStuck);
  EXPECT_EQ(At(2).generation().communicator->Barrier(), OkStatus());
  for (std::thread& thread : waiting) thread.join();
  EXPECT_NE(At(1).Await(Kind::kReturned), "");
}

// With the communicator with which tasks train.
class SocketGroupTest : public EndpointTest {
 protected:
  static constexpr int64_t kValues = 300'000;  // more than sockets buffer

  void SetUp() override {
    make_communicator_ = MakeSockets;
    EndpointTest::SetUp();
  }

  // Sums rank + 1 over all ranks.
  static Status Sum(TestTask& task) {
    std::vector<float> values(kValues, static_cast<float>(task.generation().rank + 1));
    RETURN_IF_ERROR(task.generation().communicator->AllReduce(
        std::as_writable_bytes(std::span(values)), DType::kFloat32, Reduction::kSum));
    if (values == std::vector<float>(kValues, 6)) return OkStatus();
    return Internal("expected 1 + 2 + 3 everywhere, got ", values.front(), " … ", values.back());
  }
  void ExpectSum() { EXPECT_EQ(All(Sum), std::vector<Status>(running_.size())); }
};

TEST_F(SocketGroupTest, SumsBeforeAndAfterAMemberIsReplaced) {
  JoinAll();
  ExpectSum();
  running_[1].reset();
  const std::vector<Status> results = All(Sum);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kUnavailable) << results[i];
    EXPECT_NE(Message(results[i]).find(StrCat("worker 0 (", tasks_[1].address, ")")),
              std::string::npos)
        << results[i];
  }
  Start(1);
  JoinAll();
  ExpectSum();
}

TEST_F(SocketGroupTest, SumsAfterTheLeaderIsReplaced) {
  JoinAll();
  running_[0].reset();
  for (const Status& result : All(Sum)) {  // that of the lost leader is OK
    EXPECT_TRUE(result.ok() || absl::IsUnavailable(result)) << result;
  }
  Start(0);
  JoinAll();
  ExpectSum();
}

class ExchangeTimeoutTest : public SocketGroupTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 200ms, .lease = 10s};
    exchange_timeout_ = 1s;
    SocketGroupTest::SetUp();
  }
};

TEST_F(ExchangeTimeoutTest, EndsAnExchangeAndNamesTheTaskThatIsWaitedFor) {
  JoinAll();
  ExpectSum();
  std::vector<Status> results(2);
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back([&, i] { results[i] = Sum(At(i)); });
  }
  for (std::thread& thread : waiting) thread.join();
  for (const Status& result : results) {
    EXPECT_EQ(result.code(), StatusCode::kDeadlineExceeded) << result;
    EXPECT_NE(Message(result).find(StrCat("worker 1 (", tasks_[2].address, ")")), std::string::npos)
        << result;
  }
}

}  // namespace
}  // namespace tfjob::collectives
