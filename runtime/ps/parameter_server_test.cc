// Tasks as threads of one process, over loopback ports and over pipes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "runtime/ps/client.h"
#include "runtime/ps/placement.h"
#include "runtime/ps/server.h"
#include "runtime/rpc/grpc_connector.h"
#include "runtime/rpc/pipe_connector.h"
#include "runtime/rpc/server.h"

namespace tfjob::ps {
namespace {

rpc::Identity Task(const std::string& type, int index, int64_t incarnation = 1) {
  return {.job_uid = "uid",
          .attempt = 0,
          .task_type = type,
          .task_index = index,
          .incarnation = incarnation};
}

// Two variables; the gradient of each is one everywhere, so SGD with rate 0.5 takes 0.5 a step.
Definition TwoVariables(Mode mode = Mode::kAsynchronous) {
  Definition definition{
      .variables = {{.name = "w", .shape = {300, 10}}, {.name = "b", .shape = {7}}}};
  definition.optimizer.learning_rate = 0.5;
  definition.mode = mode;
  definition.max_shard_bytes = 4000;
  return definition;
}

Snapshot InitialState(const Definition& definition, float value) {
  Snapshot snapshot;
  for (const Variable& variable : definition.variables) {
    Tensor tensor(variable.dtype, variable.shape);
    std::ranges::fill(tensor.data<float>(), value);
    snapshot.variables.push_back(
        VariableState::Initial(variable, definition.optimizer, std::move(tensor)));
  }
  return snapshot;
}

class Events {
 public:
  EventSink sink() {
    return [this](const Event& event) {
      MutexLock lock(mutex_);
      events_.push_back(event);
      changed_.NotifyAll();
    };
  }
  bool Await(Event::Kind kind, const std::string& peer) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    for (;;) {
      for (const Event& event : events_) {
        if (event.kind == kind && event.peer == peer) return true;
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
};

// One ps task, which can be killed and started again at the same address.
class PsTask {
 public:
  PsTask(int index, std::vector<std::string> servers) : index_(index), servers_(servers) {}
  ~PsTask() { Kill(); }

  void Start(int64_t incarnation = 1) {
    ps_ = *ParameterServer::Create({.identity = Task("ps", index_, incarnation),
                                    .servers = servers_,
                                    .on_event = events.sink()});
    const std::string& address = servers_[static_cast<size_t>(index_)];
    const int port = std::stoi(address.substr(address.find(':') + 1));
    StatusOr<std::unique_ptr<rpc::Server>> server =
        rpc::Server::Start({.host = "127.0.0.1",
                            .port = port,
                            .identity = Task("ps", index_, incarnation),
                            .streams = {{kParameterService, ps_.get()}}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Kill() {
    server_.reset();
    ps_.reset();
  }
  ParameterServer& ps() { return *ps_; }

  Events events;

 private:
  const int index_;
  const std::vector<std::string> servers_;
  std::unique_ptr<ParameterServer> ps_;
  std::unique_ptr<rpc::Server> server_;
};

// Ports that were free a moment ago.
std::vector<std::string> FreeAddresses(int count) {
  std::vector<std::unique_ptr<rpc::Server>> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    servers.push_back(*rpc::Server::Start({.host = "127.0.0.1"}));
    addresses.push_back(StrCat("127.0.0.1:", servers.back()->port()));
  }
  return addresses;
}

// A worker with memory for values and gradients.
class Trainer {
 public:
  explicit Trainer(const Definition& definition) : definition_(definition) {
    for (const Variable& variable : definition.variables) {
      values_.emplace_back(variable.dtype, variable.shape);
      gradients_.emplace_back(variable.dtype, variable.shape);
      std::ranges::fill(gradients_.back().data<float>(), 1.f);
      value_spans_.push_back(values_.back().bytes());
      gradient_spans_.push_back(std::as_const(gradients_.back()).bytes());
    }
  }

  void SetGradients(float value) {
    for (Tensor& gradient : gradients_) std::ranges::fill(gradient.data<float>(), value);
  }
  Status Join(ClientOptions options) {
    options.definition = definition_;
    options.on_event = events.sink();
    ASSIGN_OR_RETURN(client, ParameterClient::Create(std::move(options)));
    ASSIGN_OR_RETURN(last, client->WaitReady(value_spans_));
    return OkStatus();
  }
  Status Train() {
    ASSIGN_OR_RETURN(last, client->Exchange(gradient_spans_, value_spans_));
    return OkStatus();
  }
  // The one value that all elements have, or NaN.
  float Value() {
    const float first = values_[0].data<float>()[0];
    for (Tensor& tensor : values_) {
      for (float value : tensor.data<float>()) {
        if (value != first) return std::nanf("");
      }
    }
    return first;
  }
  std::span<const std::span<std::byte>> value_spans() { return value_spans_; }
  std::span<const std::span<const std::byte>> gradient_spans() { return gradient_spans_; }

  std::unique_ptr<ParameterClient> client;
  StepResult last;
  Events events;

 private:
  const Definition definition_;
  std::vector<Tensor> values_, gradients_;
  std::vector<std::span<std::byte>> value_spans_;
  std::vector<std::span<const std::byte>> gradient_spans_;
};

class ParameterServerTest : public testing::Test {
 protected:
  void StartServers(int count) {
    servers_ = FreeAddresses(count);
    for (int i = 0; i < count; ++i) {
      tasks_.push_back(std::make_unique<PsTask>(i, servers_));
      tasks_.back()->Start();
    }
  }
  ClientOptions Chief(const Definition& definition, float value = 100) {
    ClientOptions options = Worker(0);
    options.identity.task_type = "chief";
    options.chief = true;
    options.provide_state = [=] { return InitialState(definition, value); };
    return options;
  }
  ClientOptions Worker(int index, int64_t incarnation = 1) {
    return {.servers = servers_, .identity = Task("worker", index, incarnation), .patience = 30s};
  }

  std::vector<std::string> servers_;
  std::vector<std::unique_ptr<PsTask>> tasks_;
};

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
  EXPECT_EQ(worker.Train().code(), StatusCode::kCancelled);
}

TEST_F(ParameterServerTest, SendsGradientsAsTheyBecomeReady) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.client->BeginStep(chief.gradient_spans(), chief.value_spans()), OkStatus());
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
  definition.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  StatusOr<Snapshot> snapshot = chief.client->TakeSnapshot();
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

TEST_F(ParameterServerTest, WaitsForServersAndSaysForWhom) {
  servers_ = FreeAddresses(2);
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
  EXPECT_TRUE(worker.events.Await(Event::Kind::kLost, "ps 1"));
  std::thread restart([&] { tasks_[1]->Start(2); });
  std::thread other([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
  ASSERT_EQ(chief.Train(), OkStatus());
  other.join();
  restart.join();
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 4);
  // Server 0 kept four updates; server 1 began anew with three.
  const Snapshot snapshot = *chief.client->TakeSnapshot();
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[0], 98);
  const std::vector<Shard> shards = Place(definition, 2);
  EXPECT_EQ(shards[1].server, 1);
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[static_cast<size_t>(shards[1].offset) / 4],
            98.5f);
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
  EXPECT_TRUE(tasks_[0]->events.Await(Event::Kind::kLost, "worker 1"));
  ASSERT_EQ(again.Join(Worker(1, 6)), OkStatus());
  ASSERT_EQ(again.Train(), OkStatus());
  EXPECT_EQ(again.last.global_step, 2);
  ClientOptions options = Worker(1, 5);
  options.refusal_patience = Duration(0);
  EXPECT_EQ(late.Join(options).code(), StatusCode::kFailedPrecondition);
}

// Breaks streams after so many frames were read or written, as a lost connection does.
class BreakingConnector : public rpc::Connector {
 public:
  // The next stream to the server breaks when the client has written (or read) `frames` more.
  void BreakAfterWrites(int frames) { writes_ = frames; }
  void BreakAfterReads(int frames) { reads_ = frames; }

  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    ASSIGN_OR_RETURN(rpc::OpenStream stream, inner_->Connect(address, service, self, timeout));
    ++connects;
    stream.transport = std::make_unique<Breaking>(*this, std::move(stream.transport));
    return stream;
  }
  std::atomic<int> connects = 0;

 private:
  class Breaking : public rpc::Transport {
   public:
    Breaking(BreakingConnector& owner, std::unique_ptr<rpc::Transport> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    // Heartbeats and credits do not count.
    static bool Counts(uint16_t type) { return type < 0xFF00; }
    Status Write(const rpc::OutgoingFrame& frame) override {
      if (Counts(frame.header.type) && owner_.writes_.fetch_sub(1) == 0) {
        for (const rpc::Segment& segment : frame.segments) {
          if (segment.release != nullptr) segment.release(segment.argument);
        }
        inner_->Cancel();
        return Unavailable("broken");
      }
      return inner_->Write(frame);
    }
    Status Read(rpc::IncomingFrame& frame) override {
      RETURN_IF_ERROR(inner_->Read(frame));
      if (Counts(frame.header.type) && owner_.reads_.fetch_sub(1) == 0) {
        inner_->Cancel();
        return Unavailable("broken");
      }
      return OkStatus();
    }
    void Cancel() override { inner_->Cancel(); }

   private:
    BreakingConnector& owner_;
    const std::unique_ptr<rpc::Transport> inner_;
  };

  const std::unique_ptr<rpc::Connector> inner_ = rpc::MakeGrpcConnector();
  std::atomic<int> writes_ = -1, reads_ = -1;
};

TEST_F(ParameterServerTest, ARepeatedContributionIsAppliedOnce) {
  // Breaks before any gradient left, between two frames of gradients, and between frames of values.
  for (Mode mode : {Mode::kAsynchronous, Mode::kSynchronous}) {
    tasks_.clear();
    StartServers(2);
    Definition definition{.variables = {}, .mode = mode};
    for (int i = 0; i < 6; ++i) {
      definition.variables.push_back({.name = StrCat("v", i), .shape = {300'000}});
    }
    definition.optimizer.learning_rate = 0.5;
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

class SynchronousTest : public ParameterServerTest {
 protected:
  static Definition Synchronous(int aggregate) {
    Definition definition = TwoVariables(Mode::kSynchronous);
    definition.replicas_to_aggregate = aggregate;
    return definition;
  }
  // Each trainer on a thread of its own until the job has made `steps` steps.
  static void TrainUntil(std::vector<Trainer*> trainers, int64_t steps) {
    std::vector<std::thread> threads;
    for (Trainer* trainer : trainers) {
      threads.emplace_back([=] {
        while (trainer->last.global_step < steps) ASSERT_EQ(trainer->Train(), OkStatus());
        EXPECT_EQ(trainer->client->Leave(), OkStatus());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(SynchronousTest, AStepIsTheMeanOfAllWorkers) {
  StartServers(3);
  const Definition definition = Synchronous(2);
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  worker.SetGradients(3);
  TrainUntil({&chief, &worker}, 20);
  EXPECT_EQ(chief.last.global_step, 20);
  EXPECT_EQ(worker.last.global_step, 20);
  EXPECT_FALSE(worker.last.dropped);
  EXPECT_EQ(chief.Value(), 80);  // 20 steps of 0.5 times the mean of 1 and 3
  EXPECT_EQ(worker.Value(), 80);
}

TEST_F(SynchronousTest, DropsTheGradientsOfBackupWorkers) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  Trainer chief(definition), backup(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(backup.Join(Worker(1)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 1);
  ASSERT_EQ(backup.Train(), OkStatus());
  EXPECT_TRUE(backup.last.dropped);
  EXPECT_EQ(backup.last.global_step, 1);
  EXPECT_EQ(backup.Value(), 99.5f);
  ASSERT_EQ(backup.Train(), OkStatus());
  EXPECT_FALSE(backup.last.dropped);
  EXPECT_EQ(backup.last.global_step, 2);
}

TEST_F(SynchronousTest, TakesSeveralBatchesOfAWorkerWhenThereAreTooFew) {
  StartServers(2);
  const Definition definition = Synchronous(3);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  for (int batch = 1; batch <= 3; ++batch) {
    ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_EQ(chief.last.again, batch < 3);
    EXPECT_EQ(chief.last.global_step, batch / 3);
  }
  EXPECT_EQ(chief.Value(), 99.5f);
}

TEST_F(SynchronousTest, AWorkerThatDiesInMidStepHoldsNobodyUp) {
  StartServers(2);
  const Definition definition = Synchronous(2);
  Trainer chief(definition);
  auto worker = std::make_unique<Trainer>(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker->Join(Worker(1)), OkStatus());
  std::thread death([&] { worker.reset(); });
  TrainUntil({&chief}, 3);
  death.join();
  EXPECT_EQ(chief.Value(), 98.5f);
  Trainer again(definition);
  ASSERT_EQ(again.Join(Worker(1, 2)), OkStatus());
  TrainUntil({&chief, &again}, 6);
  EXPECT_EQ(again.Value(), 97);
}

TEST_F(SynchronousTest, SavesExactlyOneStepWhileOthersTrain) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  std::thread other([&] { TrainUntil({&worker}, 100); });
  for (int i = 0; i < 5; ++i) {
    StatusOr<Snapshot> snapshot = chief.client->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    for (const VariableState& state : snapshot->variables) {
      for (float value : state.value.data<float>()) {
        ASSERT_EQ(value, 100 - 0.5f * static_cast<float>(snapshot->global_step));
      }
    }
  }
  other.join();
}

TEST_F(SynchronousTest, ARestartedServerRollsAllBackToTheCheckpoint) {
  for (int killed : {0, 1}) {
    tasks_.clear();
    StartServers(2);
    const Definition definition = Synchronous(2);
    Snapshot checkpoint = InitialState(definition, 100);
    Trainer chief(definition), worker(definition);
    ClientOptions options = Chief(definition);
    options.provide_state = [&] { return checkpoint; };
    ASSERT_EQ(chief.Join(options), OkStatus());
    ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
    std::thread first([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
    ASSERT_EQ(chief.Train(), OkStatus());
    first.join();
    checkpoint = *chief.client->TakeSnapshot();
    EXPECT_EQ(checkpoint.global_step, 1);
    std::thread second([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
    ASSERT_EQ(chief.Train(), OkStatus());
    second.join();
    EXPECT_EQ(chief.last.global_step, 2);
    // In the middle of the third step.
    std::thread third([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
    tasks_[static_cast<size_t>(killed)]->Kill();
    tasks_[static_cast<size_t>(killed)]->Start(2);
    ASSERT_EQ(chief.Train(), OkStatus());
    third.join();
    EXPECT_TRUE(chief.last.rolled_back);
    EXPECT_TRUE(worker.last.rolled_back);
    EXPECT_EQ(chief.last.global_step, 1);
    EXPECT_EQ(chief.Value(), 99.5f);
    TrainUntil({&chief, &worker}, 5);
    EXPECT_EQ(chief.Value(), 97.5f);
    EXPECT_EQ(worker.Value(), 97.5f);
  }
}

TEST(InProcess, NeedsNoNetwork) {
  rpc::PipeConnector connector;
  std::unique_ptr<ParameterServer> ps = *ParameterServer::Create(
      {.identity = Task("ps", 0), .servers = {"here"}, .connector = &connector});
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
