// Tests the asynchronous parameter server end to end, over loopback ports and over pipes.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/ps/placement.h"
#include "runtime/ps/test_network.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"
#include "tests/sanitized.h"

namespace tfjob::ps {
namespace {

TEST_F(ParameterServerTest, AppliesOnArrivalAndCountsSteps) {
  StartServers(2);
  const Definition definition = TwoVariables();
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  EXPECT_EQ(chief.Value(), 100);
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_EQ(chief.last.global_step, i);
    EXPECT_EQ(chief.last.staleness, 0);
    EXPECT_EQ(chief.Value(), 100 - 0.5f * static_cast<float>(i));
  }
  ASSERT_EQ(worker.Train(), OkStatus());
  EXPECT_EQ(worker.last.global_step, 4);
  EXPECT_EQ(worker.last.staleness, 3);
  EXPECT_EQ(worker.Value(), 98);
  EXPECT_EQ(tasks_[0]->ps().State().global_step, 4);
  EXPECT_GT(tasks_[1]->ps().State().shards, 0);
  ASSERT_EQ(chief.client->Finish(), OkStatus());
  EXPECT_EQ(tasks_[0]->ps().WaitUntilFinished(), OkStatus());
  EXPECT_EQ(tasks_[1]->ps().WaitUntilFinished(), OkStatus());
  // The worker may still complete some steps before it learns that the chief has ended the job.
  Status end = worker.Train();
  for (int i = 0; i < 1000 && end.ok(); ++i) end = worker.Train();
  EXPECT_EQ(end.code(), StatusCode::kCancelled) << end;
}

TEST_F(ParameterServerTest, SendsGradientsAsTheyBecomeReady) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.client->BeginStep(chief.gradient_spans(), chief.value_spans(), 0), OkStatus());
  chief.client->MarkReady(1);
  chief.client->MarkReady(0);
  StatusOr<StepResult> result = chief.client->EndStep();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->global_step, 1);
  EXPECT_EQ(chief.Value(), 99.5f);
}

TEST_F(ParameterServerTest, ManyWorkersLoseNoUpdate) {
  StartServers(3);
  const Definition definition = TwoVariables();
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  std::vector<std::thread> threads;
  for (int w = 0; w < 4; ++w) {
    threads.emplace_back([&, w] {
      Trainer worker(definition);
      ASSERT_EQ(worker.Join(Worker(w)), OkStatus());
      for (int i = 0; i < 25; ++i) ASSERT_EQ(worker.Train(), OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 101);
  EXPECT_EQ(chief.Value(), 49.5f);
}

TEST_F(ParameterServerTest, SnapshotAndRestoreKeepValuesSlotsStepAndLedger) {
  StartServers(2);
  Definition definition = TwoVariables();
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->global_step, 1);
  EXPECT_NE(snapshot->ledger.find("chief 0 1 2\n"), std::string::npos) << snapshot->ledger;
  EXPECT_NEAR(snapshot->variables[0].slots[0].data<float>()[5], 0.1, 1e-6);
  ASSERT_EQ(chief.Train(), OkStatus());
  const float second = chief.Value();
  ASSERT_EQ(chief.client->Restore(*snapshot), OkStatus());
  ASSERT_TRUE(chief.client->WaitReady(chief.value_spans()).ok());
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 2);
  EXPECT_EQ(chief.Value(), second);
}

TEST_F(ParameterServerTest, RefusesStrangers) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition), stranger(definition), other(TwoVariables(Mode::kSynchronous));
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1);
  options.identity.job_uid = "another";
  options.refusal_patience = Duration(0);
  Status status = stranger.Join(options);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find(servers_[0]), std::string_view::npos) << status;
  options = Worker(1);
  options.refusal_patience = Duration(0);
  EXPECT_EQ(other.Join(options).code(), StatusCode::kFailedPrecondition);
}

TEST_F(ParameterServerTest, ATaskWithAnotherNumberOfServersIsToldToRestartTheJob) {
  StartServers(2);
  const Definition definition = TwoVariables();
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1);
  options.servers.pop_back();
  options.refusal_patience = Duration(0);
  const Status status = worker.Join(options);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find("what 2 parameter servers share, but this task's TF_CONFIG has 1"),
            std::string_view::npos)
      << status;
  EXPECT_NE(Message(status).find("tfjob restart"), std::string_view::npos) << status;
}

TEST_F(ParameterServerTest, WaitsForServersAndSaysForWhom) {
  servers_ = TestAddresses(2);
  Trainer chief(TwoVariables());
  ClientOptions options = Chief(TwoVariables());
  options.patience = 300ms;
  Status status = chief.Join(options);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  for (const std::string& address : servers_) {
    EXPECT_NE(Message(status).find(address), std::string_view::npos) << status;
  }
}

TEST_F(ParameterServerTest, ARestartedServerIsRefilledAloneAndTheStepGoesOn) {
  StartServers(2);
  const Definition definition = TwoVariables();
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  tasks_[1]->Kill();
  EXPECT_TRUE(worker.events.Await(state::PeerEvent::Kind::kLost, "ps 1"));
  std::thread restart([&] { tasks_[1]->Start(2); });
  std::thread other([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
  ASSERT_EQ(chief.Train(), OkStatus());
  other.join();
  restart.join();
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 4);
  // Server 0 has kept four updates. Server 1 was refilled, and has three updates.
  const state::Snapshot snapshot = *chief.client->TakeSnapshot();
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[0], 98);
  const std::vector<Shard> shards = Place(definition, 2);
  EXPECT_EQ(shards[1].server, 1);
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[static_cast<size_t>(shards[1].offset) / 4],
            98.5f);
}

TEST_F(ParameterServerTest, AServerThatStartsAgainAtTheEndIsToldToo) {
  StartServers(2);
  const Definition definition = TwoVariables();
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  tasks_[1]->Kill();
  std::thread restart([&] {
    EXPECT_TRUE(chief.events.Await(state::PeerEvent::Kind::kWaiting, "ps 1"));
    tasks_[1]->Start(2);
  });
  EXPECT_EQ(chief.client->Finish(), OkStatus());
  restart.join();
  EXPECT_EQ(tasks_[0]->ps().WaitUntilFinished(), OkStatus());
  EXPECT_EQ(tasks_[1]->ps().WaitUntilFinished(), OkStatus());
}

TEST_F(ParameterServerTest, ALossSaysWhatWasAwaited) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition);
  auto worker = std::make_unique<Trainer>(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker->Join(Worker(1)), OkStatus());
  ASSERT_EQ(worker->Train(), OkStatus());
  worker.reset();
  const std::string lost = tasks_[0]->events.Message(state::PeerEvent::Kind::kLost, "worker 1");
  EXPECT_TRUE(lost.starts_with("worker 1 (127.0.0.1:")) << lost;
  EXPECT_NE(lost.find("was lost at step 1, which did not wait for it: "), std::string::npos)
      << lost;
  // The server is lost in the middle of a step. No gradient is ready, so no answer can arrive.
  ASSERT_EQ(chief.client->BeginStep(chief.gradient_spans(), chief.value_spans(), 0), OkStatus());
  tasks_[0]->Kill();
  const std::string server = chief.events.Message(state::PeerEvent::Kind::kLost, "ps 0");
  EXPECT_NE(server.find("was lost while its answer to step 0 was awaited: "), std::string::npos)
      << server;
}

// A chief that sends kFinish and then only reads, slowly.
class SlowChief : public rpc::Transport {
 public:
  Status Write(const rpc::OutgoingFrame& frame) override {
    MutexLock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + 200ms;
    while (changed_.WaitUntil(mutex_, end)) {
    }
    if (frame.header.type < 0xFF00) heard_.push_back(frame.header.type);  // no heartbeats
    return OkStatus();
  }
  Status Read(rpc::IncomingFrame& frame) override {
    MutexLock lock(mutex_);
    while (asked_ && !ended_) changed_.Wait(mutex_);
    if (ended_) return Unavailable("ended");
    asked_ = true;
    rpc::AppendPrefix({.header = {.type = wire::kFinish, .sequence = 1}, .segments = {}}, wire_);
    frame.pieces.assign(1, std::as_bytes(std::span(wire_)));
    return frame.Parse();
  }
  void Cancel() override {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  std::vector<uint16_t> heard() {
    MutexLock lock(mutex_);
    return heard_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string wire_;
  std::vector<uint16_t> heard_ ABSL_GUARDED_BY(mutex_);
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(TheEnd, ComesAfterTheServersLastWords) {
  rpc::PipeConnector connector;
  std::unique_ptr<ParameterServer> ps =
      *ParameterServer::Create({.identity = Task("ps", 0), .connector = &connector});
  SlowChief chief;
  std::thread session([&] { ps->Serve(Task("chief", 0), "there", chief); });
  EXPECT_EQ(ps->WaitUntilFinished(), OkStatus());
  ps->Stop();
  EXPECT_EQ(chief.heard(), (std::vector<uint16_t>{wire::kReply, wire::kFinished}));
  chief.Cancel();
  session.join();
}

TEST_F(ParameterServerTest, ARestartedWorkerRejoins) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition), again(definition), late(definition);
  auto worker = std::make_unique<Trainer>(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker->Join(Worker(1, 5)), OkStatus());
  ASSERT_EQ(worker->Train(), OkStatus());
  worker.reset();
  EXPECT_TRUE(tasks_[0]->events.Await(state::PeerEvent::Kind::kLost, "worker 1"));
  ASSERT_EQ(again.Join(Worker(1, 6)), OkStatus());
  ASSERT_EQ(again.Train(), OkStatus());
  EXPECT_EQ(again.last.global_step, 2);
  ClientOptions options = Worker(1, 5);
  options.refusal_patience = Duration(0);
  EXPECT_EQ(late.Join(options).code(), StatusCode::kFailedPrecondition);
}

TEST_F(ParameterServerTest, ARepeatedContributionIsAppliedOnce) {
  // The connection breaks before any gradient is sent, between two frames of gradients, and between
  // two frames of values.
  for (Mode mode : {Mode::kAsynchronous, Mode::kSynchronous}) {
    tasks_.clear();
    StartServers(2);
    Definition definition{.mode = mode};
    for (int i = 0; i < 6; ++i) {
      definition.state.variables.push_back({.name = StrCat("v", i), .shape = {300'000}});
    }
    definition.state.optimizer.learning_rate = 0.5;
    BreakingConnector connector;
    Trainer chief(definition);
    ClientOptions options = Chief(definition);
    options.connector = &connector;
    ASSERT_EQ(chief.Join(options), OkStatus());
    int64_t step = 0;
    for (int frames = 0; frames < 4; ++frames) {
      for (bool reads : {false, true}) {
        const int before = connector.connects;
        reads ? connector.BreakAfterReads(frames) : connector.BreakAfterWrites(frames);
        ASSERT_EQ(chief.Train(), OkStatus());
        ++step;
        EXPECT_EQ(chief.last.global_step, step);
        EXPECT_EQ(chief.Value(), 100 - 0.5f * static_cast<float>(step)) << frames << reads;
        EXPECT_GT(connector.connects, before) << "nothing broke";
      }
    }
  }
}

TEST_F(ParameterServerTest, TheLastCopyIsTakenOverALostConnection) {
  for (Mode mode : {Mode::kAsynchronous, Mode::kSynchronous}) {
    tasks_.clear();
    StartServers(2);
    const Definition definition = TwoVariables(mode);
    BreakingConnector connector;
    std::atomic<bool> stop = false;
    Trainer chief(definition);
    ClientOptions options = Chief(definition);
    options.connector = &connector;
    options.stop_requested = [&] { return stop.load(); };
    ASSERT_EQ(chief.Join(options), OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
    stop = true;
    connector.BreakAfterWrites(1);
    const StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(snapshot->global_step, 1);
    // After a request to stop, TakeSnapshot makes only one attempt to recover a server that stays
    // down.
    tasks_[1]->Kill();
    EXPECT_EQ(chief.client->TakeSnapshot().status().code(), StatusCode::kCancelled);
  }
}

TEST_F(ParameterServerTest, AWorkerWhoseClockWentBackRejoins) {
  StartServers(1);
  const Definition definition = TwoVariables();
  state::Snapshot checkpoint = InitialState(definition, 100);
  Trainer chief(definition), worker(definition), again(definition);
  ClientOptions options = Chief(definition);
  options.provide_state = [&] { return checkpoint; };
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1, 5)), OkStatus());
  ASSERT_EQ(worker.Train(), OkStatus());
  checkpoint = *chief.client->TakeSnapshot();
  worker.client.reset();
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  Status joined;
  std::thread joins([&] {
    options = Worker(1, 4);
    options.refusal_patience = Duration(0);
    joined = again.Join(options);
  });
  const Status trained = chief.Train();
  joins.join();
  EXPECT_EQ(trained, OkStatus());
  ASSERT_EQ(joined, OkStatus());
  const int64_t before = again.last.global_step;
  ASSERT_EQ(again.Train(), OkStatus());
  EXPECT_EQ(again.last.global_step, before + 1) << "a contribution was taken for a repeated one";
}

// In each direction, the transfer of a shard takes longer than the lease and stall_after. While
// bytes arrive, the sender must not be considered silent, and the transfer must not be considered
// stalled.
TEST(SlowNetwork, ALargeShardIsNotSilence) {
  const rpc::LivenessRules liveness{.suspect_after = 400ms * kSlowdown, .lease = 600ms * kSlowdown};
  rpc::PipeConnector pipe;
  SlowConnector slow(pipe, 8e6 / kSlowdown);
  Events events;
  std::unique_ptr<ParameterServer> ps = *ParameterServer::Create({.identity = Task("ps", 0),
                                                                  .on_event = events.sink(),
                                                                  .connector = &pipe,
                                                                  .liveness = liveness});
  pipe.Listen("here", kParameterService, Task("ps", 0), *ps);
  Definition definition{.state = {.variables = {{.name = "w", .shape = {2'000'000}}}}};
  definition.state.optimizer.learning_rate = 0.5;
  {
    Trainer chief(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 60s,
                          .liveness = liveness,
                          .stall_after = 300ms * kSlowdown,
                          .connector = &slow}),
              OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_EQ(chief.Value(), 2.5f);
    StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_FALSE(chief.events.Said("no byte of its state moved"));
    EXPECT_EQ(snapshot->variables[0].value.data<float>()[1'999'999], 2.5f);
    EXPECT_FALSE(chief.events.Has(state::PeerEvent::Kind::kLost));
    EXPECT_FALSE(events.Has(state::PeerEvent::Kind::kLost));
  }
  pipe.Close("here");
}

TEST(SlowNetwork, ValuesThatWereAskedForComeBeforeTheEnd) {
  rpc::PipeConnector pipe;
  SlowConnector slow(pipe, 40e6);
  std::unique_ptr<ParameterServer> ps =
      *ParameterServer::Create({.identity = Task("ps", 0), .connector = &pipe});
  pipe.Listen("here", kParameterService, Task("ps", 0), *ps);
  // The variable has more bytes than may be in flight at once.
  const Definition definition{.state = {.variables = {{.name = "w", .shape = {6'000'000}}}}};
  {
    Trainer chief(definition), worker(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .connector = &pipe}),
              OkStatus());
    std::thread joins([&] {
      EXPECT_EQ(worker.Join({.servers = {"here"},
                             .identity = Task("worker", 1),
                             .patience = 60s,
                             .connector = &slow}),
                OkStatus());
    });
    while (slow.values == 0) std::this_thread::yield();
    EXPECT_EQ(chief.client->Finish(), OkStatus());
    joins.join();
    EXPECT_EQ(worker.Value(), 3);
  }
  pipe.Close("here");
}

TEST(InProcess, NeedsNoNetwork) {
  rpc::PipeConnector connector;
  std::unique_ptr<ParameterServer> ps = *ParameterServer::Create(
      {.identity = Task("ps", 0), .chief_type = "worker", .connector = &connector});
  connector.Listen("here", kParameterService, Task("ps", 0), *ps);
  const Definition definition = TwoVariables();
  {
    Trainer chief(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("worker", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 30s,
                          .connector = &connector}),
              OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_EQ(chief.Value(), 2.5f);
  }
  connector.Close("here");
}

}  // namespace
}  // namespace tfjob::ps
