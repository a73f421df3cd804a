// Tests how the chief changes the learning rate on the servers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>
#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// The gradients are 1, and the learning rate is 0.5, so each step subtracts 0.5 from each value.
class LearningRateTest : public ParameterServerTest {
 protected:
  static Definition Defined(Mode mode, int tasks) {
    Definition definition = TwoVariables(mode);
    definition.replicas_to_aggregate = tasks;
    return definition;
  }
  // Returns the value of the second variable, which is stored on ps 1.
  static float OnPs1(Trainer& chief) {
    const StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
    return snapshot.ok() ? snapshot->variables[1].value.data<float>()[0] : NAN;
  }
};

constexpr state::LearningRate kQuarter{.rate = 0.25, .step = 3};

TEST_F(LearningRateTest, OfASynchronousJobChangesOnAllServersWithTheSameStep) {
  StartServers(3);
  const Definition definition = Defined(Mode::kSynchronous, 2);
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  EXPECT_EQ(chief.client->learning_rate(), std::nullopt);
  std::thread thread([&] {
    while (worker.last.global_step < 6) ASSERT_EQ(worker.Train(), OkStatus());
  });
  while (chief.last.global_step < 6) {
    if (chief.last.global_step == 3) chief.client->SetLearningRate(kQuarter);
    ASSERT_EQ(chief.Train(), OkStatus());
  }
  thread.join();
  EXPECT_EQ(chief.Value(), 100 - 3 * 0.5 - 3 * 0.25);
  EXPECT_EQ(worker.Value(), chief.Value());
  EXPECT_EQ(worker.client->learning_rate(), kQuarter) << "ps 0 has told the worker";
  const StatusOr<state::Snapshot> snapshot = chief.client->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->learning_rate, kQuarter);
  EXPECT_EQ(("\n" + snapshot->ledger).find("\n-4 "), std::string::npos) << snapshot->ledger;
}

TEST_F(LearningRateTest, OfASynchronousJobRollsBackWithTheState) {
  StartServers(2);
  const Definition definition = Defined(Mode::kSynchronous, 1);
  Trainer chief(definition);
  state::Snapshot saved = InitialState(definition, 100);
  ClientOptions options = Chief(definition);
  options.provide_state = [&] { return saved; };
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  chief.client->SetLearningRate({.rate = 0.25, .step = 1});
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.Value(), 99.25);
  saved = *chief.client->TakeSnapshot();
  chief.client->SetLearningRate({.rate = 0, .step = 2});
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.Value(), 99.25);
  EXPECT_EQ(chief.client->learning_rate()->rate, 0);
  tasks_[1]->Kill();
  tasks_[1]->Start(2);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_TRUE(chief.last.rolled_back);
  EXPECT_EQ(chief.client->learning_rate(), saved.learning_rate);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.Value(), 99);
}

TEST_F(LearningRateTest, OfAnAsynchronousJobIsThatOfAServerThatIsFilledAgain) {
  StartServers(2);
  const Definition definition = Defined(Mode::kAsynchronous, 1);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  chief.client->SetLearningRate(kQuarter);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.Value(), 99.25);
  EXPECT_EQ(OnPs1(chief), 99.25);
  tasks_[1]->Kill();
  tasks_[1]->Start(2);  // the chief fills it with the first state, which has no rate
  for (int i = 0; i < 2; ++i) ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(OnPs1(chief), 99.5);
}

TEST_F(LearningRateTest, IsKnownToAChiefThatIsStartedAgain) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kAsynchronous}) {
    tasks_.clear();
    StartServers(2);
    const Definition definition = Defined(mode, 1);
    std::optional<Trainer> chief(definition);
    ASSERT_EQ(chief->Join(Chief(definition)), OkStatus());
    chief->client->SetLearningRate(kQuarter);
    ASSERT_EQ(chief->Train(), OkStatus());
    chief.emplace(definition);
    ClientOptions options = Chief(definition);
    options.identity.incarnation = 2;
    ASSERT_EQ(chief->Join(options), OkStatus());
    EXPECT_EQ(chief->client->learning_rate(), kQuarter);
    ASSERT_EQ(chief->Train(), OkStatus());
    EXPECT_EQ(chief->Value(), 99.5);
  }
}

TEST_F(LearningRateTest, IsSavedBeforeTheServersKnowIt) {
  StartServers(2);
  const Definition definition = Defined(Mode::kSynchronous, 1);
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  chief.client->SetLearningRate(kQuarter);
  EXPECT_EQ(chief.client->TakeSnapshot()->learning_rate, kQuarter);
}

using HostileRateTest = RawPeerTest;

TEST_F(HostileRateTest, ARateThatCannotBeHasNoEffect) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kAsynchronous}) {
    Start();
    RawPeer &chief = Connect("chief", 0), &worker = Connect("worker", 0);
    Bring(chief, mode, 1);
    const auto send = [](RawPeer& peer, double rate, int64_t step) {
      ASSERT_EQ(
          peer.Send({.type = wire::kSetRate, .step = step, .value = std::bit_cast<int64_t>(rate)}),
          OkStatus());
    };
    const auto reported = [&] {
      Received state = chief.Ask({.type = wire::kQuery, .sequence = 9});
      while (state.header.sequence != 9) state = chief.Next();
      return state.text;
    };
    for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) send(chief, rate, 1);
    send(chief, 0.25, -1);
    send(worker, 0.25, 1);
    EXPECT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 8}).header.type, wire::kState);
    EXPECT_EQ(reported().find("learning_rate"), std::string::npos) << reported();
    send(chief, 0.25, 1);
    EXPECT_NE(reported().find("\"learning_rate\""), std::string::npos) << reported();
    peers_.clear();
    connector_.Close("here");
    ps_.reset();
  }
}

}  // namespace
}  // namespace tfjob::ps
