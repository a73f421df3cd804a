// Tests the synchronous parameter server end to end, over loopback ports.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/socket_connector.h"

namespace tfjob::ps {
namespace {

class SynchronousTest : public ParameterServerTest {
 protected:
  static Definition Synchronous(int aggregate) {
    Definition definition = TwoVariables(Mode::kSynchronous);
    definition.replicas_to_aggregate = aggregate;
    return definition;
  }
  // Runs each trainer on its own thread until the job has completed `steps` steps.
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

TEST_F(SynchronousTest, SumsInPairsEvenIfNoMergeIsAskedFor) {
  StartServers(1);
  const Definition definition = Synchronous(4);
  std::vector<std::unique_ptr<Trainer>> tasks;
  std::vector<Trainer*> all;
  for (const float gradient : {1.f, 1e8f, -1e8f, 1.f}) {
    const int index = static_cast<int>(tasks.size()) - 1;
    all.push_back(tasks.emplace_back(std::make_unique<Trainer>(definition)).get());
    all.back()->SetGradients(gradient);
    ASSERT_EQ(all.back()->Join(index < 0 ? Chief(definition) : Worker(index)), OkStatus());
  }
  TrainUntil(all, 1);
  // In float32, (1 + 1e8) + (-1e8 + 1) is 0, whereas the sum from left to right is 1.
  EXPECT_EQ(all[0]->Value(), 100);
}

TEST_F(SynchronousTest, AStepOfALargeAndASmallShardIsTheMeanOfBoth) {
  StartServers(1);
  Definition definition{.mode = Mode::kSynchronous};
  definition.state.variables = {{.name = "w", .shape = {1 << 20}}, {.name = "b", .shape = {7}}};
  definition.state.optimizer.learning_rate = 0.5;
  definition.replicas_to_aggregate = 2;
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  worker.SetGradients(3);
  TrainUntil({&chief, &worker}, 3);
  EXPECT_EQ(chief.Value(), 97);
  EXPECT_EQ(worker.Value(), 97);
}

TEST_F(SynchronousTest, AWorkerOfALargerClusterJoinsAndTheChiefsNumberOfGradientsCounts) {
  StartServers(2);
  Trainer chief(Synchronous(1)), added(Synchronous(2));
  ASSERT_EQ(chief.Join(Chief(Synchronous(1))), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  ASSERT_EQ(added.Join(Worker(1)), OkStatus());
  ASSERT_EQ(added.Train(), OkStatus());
  EXPECT_FALSE(added.last.again);
  EXPECT_EQ(added.last.global_step, 2);
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
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  const auto connector = rpc::MakeSocketConnector();
  std::vector<std::unique_ptr<RawPeer>> worker;  // its connections
  for (const std::string& server : servers_) {
    worker.push_back(std::make_unique<RawPeer>(*connector, Task("worker", 1), server));
    ASSERT_EQ(worker.back()->admitted, OkStatus());
  }
  const int64_t epoch = tasks_[0]->ps().State().epoch;
  ASSERT_TRUE(worker[0]->Send(Push(1, 0, epoch), {{.bytes = Floats(500, 1)}}).ok());
  // The server handles frames in order, so its answer shows that it has received half of the shard.
  ASSERT_EQ(worker[0]->Ask({.type = wire::kQuery, .sequence = 2}).header.type, wire::kState);
  ASSERT_GT(tasks_[0]->ps().State().staged_bytes, 0);
  std::thread death([&] { worker.clear(); });
  TrainUntil({&chief}, 3);
  death.join();
  EXPECT_EQ(chief.Value(), 98.5f);
  Trainer again(definition);
  ASSERT_EQ(again.Join(Worker(1, 2)), OkStatus());
  TrainUntil({&chief, &again}, 6);
  EXPECT_EQ(again.Value(), 97);
}

TEST_F(SynchronousTest, AWaitEndsWhenItIsAskedTo) {
  StartServers(1);
  const Definition definition = Synchronous(2);
  std::atomic<bool> stop = false;
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1);
  options.stop_requested = [&] { return stop.load(); };
  ASSERT_EQ(worker.Join(options), OkStatus());
  std::thread asks([&] { stop = true; });
  const Status status = worker.Train();  // the chief never sends its gradient
  asks.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_NE(Message(status).find("waits for the answer to step 0 from ps 0"),
            std::string_view::npos)
      << status;
}

TEST_F(SynchronousTest, AChiefThatIsAskedToStopStillEndsItsStep) {
  StartServers(1);
  const Definition definition = Synchronous(2);
  std::atomic<int> refused = 0;
  Trainer chief(definition), worker(definition);
  ClientOptions options = Chief(definition);
  std::atomic<bool> stop = false;
  options.stop_requested = [&] { return stop && ++refused > 0; };
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  std::atomic<bool> ended = false;
  std::thread slow([&] {
    stop = true;
    while (refused < 2 && !ended) std::this_thread::sleep_for(5ms);
    if (!ended) {
      ASSERT_EQ(worker.Train(), OkStatus());
    }
  });
  const Status status = chief.Train();
  ended = true;
  slow.join();
  ASSERT_EQ(status, OkStatus());
  EXPECT_EQ(chief.last.global_step, 1);
  EXPECT_EQ(chief.client->TakeSnapshot()->global_step, 1);
}

TEST_F(SynchronousTest, SavesExactlyOneStepWhileOthersTrain) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  std::thread other([&] { TrainUntil({&worker}, 100); });
  for (int i = 0; i < 5; ++i) {
    StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    for (const state::VariableState& state : snapshot->variables) {
      for (float value : state.value.data<float>()) {
        ASSERT_EQ(value, 100 - 0.5f * static_cast<float>(snapshot->global_step));
      }
    }
  }
  other.join();
}

TEST_F(SynchronousTest, RestartedServersRollAllBackToTheCheckpoint) {
  const std::vector<std::pair<int, std::vector<size_t>>> cases = {
      {2, {0}}, {2, {1}}, {1, {0}}, {2, {0, 1}}};
  for (const auto& [servers, killed] : cases) {
    tasks_.clear();
    StartServers(servers);
    const Definition definition = Synchronous(2);
    state::Snapshot checkpoint = InitialState(definition, 100);
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
    // Kill and restart servers in the middle of the third step.
    std::thread third([&] {
      // While the chief kills servers, the step lacks the chief's gradient, so the worker may be
      // asked for another gradient.
      do {
        ASSERT_EQ(worker.Train(), OkStatus());
      } while (worker.last.again);
    });
    for (size_t server : killed) tasks_[server]->Kill();
    for (size_t server : killed) tasks_[server]->Start(2);
    const Status went_on = chief.Train();
    third.join();
    ASSERT_EQ(went_on, OkStatus());
    EXPECT_TRUE(chief.last.rolled_back);
    EXPECT_TRUE(worker.last.rolled_back);
    EXPECT_EQ(chief.last.global_step, 1);
    EXPECT_EQ(chief.Value(), 99.5f);
    TrainUntil({&chief, &worker}, 5);
    EXPECT_EQ(chief.Value(), 97.5f);
    EXPECT_EQ(worker.Value(), 97.5f);
  }
}

// Waits until the answer of server 1 has been handled. Then drops the first answer of server 0, and
// kills that server.
class LosingConnector : public rpc::Connector {
 public:
  std::function<void()> kill;
  std::atomic<bool> armed = false;

  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    ASSIGN_OR_RETURN(rpc::OpenStream stream, inner_->Connect(address, service, self, timeout));
    stream.transport =
        std::make_unique<Losing>(*this, stream.peer.task_index, std::move(stream.transport));
    return stream;
  }

 private:
  class Losing : public rpc::Transport {
   public:
    Losing(LosingConnector& owner, int server, std::unique_ptr<rpc::Transport> inner)
        : owner_(owner), server_(server), inner_(std::move(inner)) {}
    Status Write(const rpc::OutgoingFrame& frame) override { return inner_->Write(frame); }
    Status Read(rpc::IncomingFrame& frame) override {
      if (answered_) owner_.Answered();  // the previous frame was handled
      RETURN_IF_ERROR(inner_->Read(frame));
      const bool values = frame.header.type == wire::kValues && owner_.armed;
      answered_ = values && server_ == 1;
      if (!values || server_ != 0) return OkStatus();
      owner_.AwaitAnswer();
      owner_.armed = false;
      inner_->Cancel();
      owner_.kill();
      return Unavailable("broken");
    }
    void Cancel() override { inner_->Cancel(); }

   private:
    LosingConnector& owner_;
    const int server_;
    const std::unique_ptr<rpc::Transport> inner_;
    bool answered_ = false;
  };

  void Answered() {
    MutexLock lock(mutex_);
    answered_ = true;
    changed_.NotifyAll();
  }
  void AwaitAnswer() {
    MutexLock lock(mutex_);
    while (!answered_) changed_.Wait(mutex_);
  }

  const std::unique_ptr<rpc::Connector> inner_ = rpc::MakeSocketConnector();
  Mutex mutex_;
  CondVar changed_;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(SynchronousTest, AWorkerFollowsARollbackOfAServerThatHadAnsweredIt) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  LosingConnector connector;
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1);
  options.connector = &connector;
  ASSERT_EQ(worker.Join(options), OkStatus());
  connector.kill = [&] {
    tasks_[0]->Kill();
    tasks_[0]->Start(2);
  };
  connector.armed = true;
  std::thread trains([&] { ASSERT_EQ(worker.Train(), OkStatus()); });
  EXPECT_TRUE(chief.events.Await(state::PeerEvent::Kind::kLost, "ps 0"));
  EXPECT_TRUE(chief.client->TakeSnapshot().ok());
  trains.join();
  EXPECT_TRUE(worker.last.rolled_back);
  EXPECT_EQ(worker.Value(), 100);
  ASSERT_EQ(worker.Train(), OkStatus());
  EXPECT_EQ(worker.Value(), 99.5f);
}

TEST_F(SynchronousTest, ASaveThatLosesAServerGoesBackAndTheNextStepSaysSo) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(chief.Train(), OkStatus());
  tasks_[1]->Kill();
  tasks_[1]->Start(2);
  StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->global_step, 0);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_TRUE(chief.last.rolled_back);
  EXPECT_EQ(chief.last.global_step, 0);
  EXPECT_EQ(chief.Value(), 100);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_FALSE(chief.last.rolled_back);
  EXPECT_EQ(chief.Value(), 99.5f);
}

TEST_F(SynchronousTest, AServerSaysThatTheOneThatOwnsTheStepIsGone) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  Events& events = tasks_[1]->events;
  EXPECT_TRUE(events.Await(state::PeerEvent::Kind::kConnected, "ps 0"));
  tasks_[0]->Kill();
  const std::string lost = events.Message(state::PeerEvent::Kind::kLost, "ps 0");
  EXPECT_TRUE(lost.starts_with(StrCat("ps 0 (", servers_[0], "), which owns the step, was lost: ")))
      << lost;
}

TEST_F(SynchronousTest, ARestartedChiefGoesOnWhereTheServersAre) {
  StartServers(2);
  const Definition definition = Synchronous(1);
  auto chief = std::make_unique<Trainer>(definition);
  ASSERT_EQ(chief->Join(Chief(definition)), OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(chief->Train(), OkStatus());
  chief.reset();
  Trainer again(definition);
  ClientOptions options = Chief(definition, 7);
  options.identity.incarnation = 2;
  ASSERT_EQ(again.Join(options), OkStatus());
  EXPECT_EQ(again.last.global_step, 3);
  EXPECT_EQ(again.Value(), 98.5f);
  ASSERT_EQ(again.Train(), OkStatus());
  EXPECT_EQ(again.last.global_step, 4);
}

}  // namespace
}  // namespace tfjob::ps
