// Tests which training processes may continue after a parameter server was restarted without a
// record of them.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"

namespace tfjob::ps {
namespace {

using RestartTest = ParameterServerTest;

// The chief's second process has an incarnation that the restarted ps 0 does not know. ps 1 still
// knows this incarnation, although ps 1 was filled again.
TEST_F(RestartTest, ANewServerLearnsIncarnationsFromTheOthersThatItsChiefHasFilled) {
  StartServers(2);
  const Definition definition = TwoVariables(Mode::kSynchronous);
  for (const int64_t process : {1, 2}) {
    Trainer chief(definition);
    ClientOptions options = Chief(definition);
    options.identity.incarnation = process;
    ASSERT_EQ(chief.Join(options), OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
  }
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  Trainer chief(definition);
  ClientOptions options = Chief(definition);
  options.identity.incarnation = 3;
  options.refusal_patience = Duration(0);
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 1);
}

// The older process was cut off from its servers while its successor was started.
TEST_F(RestartTest, OfTwoLivingProcessesOfATaskTheLaterOneStays) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition), older(definition), later(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1, 1);
  options.refusal_patience = Duration(0);
  ASSERT_EQ(older.Join(options), OkStatus());
  ASSERT_EQ(later.Join(Worker(1, 2)), OkStatus());
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  ASSERT_EQ(chief.Train(), OkStatus());
  ASSERT_EQ(later.Train(), OkStatus());
  for (int i = 0; i < 3; ++i) {
    const Status refused = older.Train();
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(Message(refused).find("a later start of worker 1 is known"), std::string_view::npos)
        << refused;
    EXPECT_NE(Message(refused).find("stop the older process"), std::string_view::npos) << refused;
    EXPECT_EQ(later.Train(), OkStatus());
  }
}

// Refuses the first connections to one address, as if it could not be reached.
class RefusingConnector : public rpc::Connector {
 public:
  RefusingConnector(std::string address, int refusals)
      : address_(std::move(address)), refusals_(refusals) {}
  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    if (address == address_ && refusals_.fetch_sub(1) > 0)
      return Unavailable(address, ": no route to host");
    return inner_->Connect(address, service, self, timeout);
  }

 private:
  const std::unique_ptr<rpc::Connector> inner_ = rpc::MakeSocketConnector();
  const std::string address_;
  std::atomic<int> refusals_;
};

// ps 0 was filled with a state that names none of the worker's processes. ps 1 knows the first
// process, but cannot be reached at once when the second process starts. If both processes had the
// same incarnation, ps 1 would mistake gradients of the second process for gradients that it has
// already applied.
TEST_F(RestartTest, AProcessGetsNoIncarnationBeforeAllServersHaveBeenAsked) {
  StartServers(2);
  Definition definition;
  definition.state.variables = {{.name = "on_ps_0", .shape = {4}},
                                {.name = "on_ps_1", .shape = {4}}};
  definition.state.optimizer.learning_rate = 0.5;
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  {
    Trainer first(definition);
    ASSERT_EQ(first.Join(Worker(1, 1)), OkStatus());
    for (int i = 0; i < 3; ++i) ASSERT_EQ(first.Train(), OkStatus());
  }
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  ASSERT_EQ(chief.Train(), OkStatus());
  RefusingConnector connector(servers_[1], 1);
  Trainer second(definition);
  ClientOptions options = Worker(1, 2);
  options.connector = &connector;
  ASSERT_EQ(second.Join(options), OkStatus());
  const auto on_ps_1 = [&] {
    return *reinterpret_cast<const float*>(second.value_spans()[1].data());
  };
  const float before = on_ps_1();
  ASSERT_EQ(second.Train(), OkStatus());
  EXPECT_EQ(on_ps_1(), before - 0.5f);
}

using RestartedServerTest = RawPeerTest;

// ps 0 has lost its state. Both processes connect before the chief fills it. The older process
// connects last and registers first.
TEST_F(RestartedServerTest, TheLaterOfTwoProcessesStaysAlthoughTheOlderOneRegistersFirst) {
  Start();
  const auto connect = [&](int64_t instance) {
    return std::make_unique<RawPeer>(connector_, Task("worker", 0, instance));
  };
  const auto registers = [](int64_t own) -> rpc::FrameHeader {
    return {.type = wire::kRegister, .sequence = 5, .step = own};
  };
  const rpc::FrameHeader query{.type = wire::kQuery, .sequence = 4};
  auto later = connect(20);
  EXPECT_EQ(later->Ask(query).header.sequence, 4u);
  auto older = connect(500);
  EXPECT_EQ(older->Ask(query).header.sequence, 4u);
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  EXPECT_EQ(older->Ask(registers(1)).header.step, 1);

  later = connect(20);
  ASSERT_EQ(later->admitted, OkStatus());
  EXPECT_EQ(later->Ask(registers(2)).header.step, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(connect(500)->admitted)) << connect(500)->admitted;
}

// Trains on the batch that follows the position in the last result, and returns the result.
StepResult TrainNext(Trainer& trainer) {
  StatusOr<StepResult> result = trainer.client->Exchange(
      trainer.gradient_spans(), trainer.value_spans(), trainer.last.drawn + 1);
  EXPECT_TRUE(result.ok()) << result.status();
  return trainer.last = result.value_or(StepResult());
}

class BatchInFlightTest : public ParameterServerTest {
 protected:
  // Trains on three batches, and loses ps 0 while the fourth is in flight. The values are initially
  // 100, and each batch that is used subtracts 0.5.
  void LoseAServerInTheFourthBatch() {
    StartServers(1);
    ClientOptions options = Chief(definition_);
    options.provide_state = [this]() -> StatusOr<state::Snapshot> {
      return saved_ ? *saved_ : InitialState(definition_, 100);
    };
    ASSERT_EQ(chief_.Join(options), OkStatus());
    for (int batch = 1; batch <= 3; ++batch) {
      if (batch == saved_after_ + 1) saved_ = *chief_.client->TakeSnapshot();
      EXPECT_EQ(TrainNext(chief_).drawn, batch);
    }
    if (saved_after_ == 3) saved_ = *chief_.client->TakeSnapshot();
    ASSERT_EQ(chief_.client->BeginStep(chief_.gradient_spans(), chief_.value_spans(), 4),
              OkStatus());
    tasks_[0]->Kill();
    tasks_[0]->Start(2);
    const StatusOr<StepResult> result = chief_.client->EndStep();
    ASSERT_TRUE(result.ok()) << result.status();
    chief_.last = *result;
  }

  const Definition definition_ = TwoVariables();
  Trainer chief_{definition_};
  int saved_after_ = 0;
  std::optional<state::Snapshot> saved_;
};

TEST_F(BatchInFlightTest, IsUsedOnceIfThoseBeforeItAreDrawnAgain) {
  saved_after_ = 1;
  LoseAServerInTheFourthBatch();
  EXPECT_EQ(chief_.last.drawn, 1);
  EXPECT_TRUE(chief_.last.rolled_back);
  EXPECT_EQ(chief_.Value(), 99.5f) << "the batch that was in flight will be drawn again";
  while (chief_.last.drawn < 4) TrainNext(chief_);
  EXPECT_EQ(chief_.last.global_step, 4);
  EXPECT_EQ(chief_.Value(), 98.f);
}

TEST_F(BatchInFlightTest, IsUsedAtOnceIfTheStateHasThoseBeforeIt) {
  saved_after_ = 3;
  LoseAServerInTheFourthBatch();
  EXPECT_EQ(chief_.last.drawn, 4);
  EXPECT_FALSE(chief_.last.rolled_back);
  EXPECT_EQ(chief_.Value(), 98.f);
}

// ps 0 is lost between two batches, and filled again when the chief notices the loss during a save.
TEST_F(BatchInFlightTest, IsUsedOnceIfTheServerWasFilledBeforeItWasSent) {
  StartServers(1);
  ASSERT_EQ(chief_.Join(Chief(definition_)), OkStatus());
  for (int batch = 1; batch <= 3; ++batch) TrainNext(chief_);
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  ASSERT_TRUE(chief_.client->TakeSnapshot().ok());
  TrainNext(chief_);
  EXPECT_EQ(chief_.last.drawn, 0);
  EXPECT_TRUE(chief_.last.rolled_back);
  EXPECT_EQ(chief_.Value(), 100.f);
  EXPECT_EQ(TrainNext(chief_).drawn, 1);
  EXPECT_EQ(chief_.Value(), 99.5f);
}

}  // namespace
}  // namespace tfjob::ps
