// Tests servers that were asked to stop, and the state that they leave behind.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/state/run_failure.h"

namespace tfjob::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kBudget = 20s;

class EndingServerTest : public ParameterServerTest {};
class EndingPeerTest : public RawPeerTest {};

TEST_F(EndingServerTest, DoesNotWaitForACopyIfTheRunHasFailed) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  ASSERT_EQ(chief.client->Fail(state::RunFailure("bad news")), OkStatus());
  const auto start = Clock::now();
  tasks_[0]->ps().End(kBudget);
  EXPECT_LT(Clock::now() - start, kBudget / 2);
}

// The worker is stuck, and its lease is longer than the server's budget for shutting down.
TEST_F(EndingServerTest, IsCopiedAtTheLastStepIfTheNextOneDoesNotEnd) {
  StartServers(2);
  Definition definition = TwoVariables(Mode::kSynchronous);
  definition.replicas_to_aggregate = 2;
  Trainer chief(definition), worker(definition);
  StatusOr<state::Snapshot> copy = NotFound("no copy was taken");
  ClientOptions options = Chief(definition);
  options.stop_patience = 100ms;
  options.on_late_step = [&] { copy = chief.client->TakeSnapshot(); };
  options.provide_state = [&] { return copy.ok() ? *copy : InitialState(definition, 100); };
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  std::thread first([&] { EXPECT_EQ(worker.Train(), OkStatus()); });
  ASSERT_EQ(chief.Train(), OkStatus());
  first.join();
  ASSERT_EQ(chief.last.global_step, 1);

  Status second;
  std::thread waits([&] { second = chief.Train(); });
  const auto start = Clock::now();
  tasks_[1]->ps().End(kBudget);
  EXPECT_LT(Clock::now() - start, kBudget / 2);
  tasks_[1]->Kill();
  tasks_[1]->Start(2);
  waits.join();
  EXPECT_EQ(second, OkStatus());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->global_step, 1);
  EXPECT_TRUE(chief.last.rolled_back);
  EXPECT_EQ(chief.last.global_step, 1);
  EXPECT_EQ(chief.Value(), 99.5f);
}

// An asynchronous server applies no updates after its last copy, unless the chief dies before it
// has received the copies of all servers.
TEST_F(EndingPeerTest, GoesOnIfTheChiefDiesWithTheCopy) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  Bring(chief, Mode::kAsynchronous, 1);
  RawPeer& worker = Connect("worker", 0);
  const std::vector<Bytes> gradient = {{.bytes = Floats(4, 1)}};
  ASSERT_EQ(worker.Ask(Push(1, 0, 1), gradient).header.step, 1);

  std::thread ends([&] { ps_->End(kBudget); });
  EXPECT_EQ(chief.Next().header.type, wire::kState);
  EXPECT_EQ(worker.Next().header.type, wire::kState);
  Received copied = chief.Ask({.type = wire::kSnapshot, .sequence = 7});
  while (copied.header.type == wire::kShard) copied = chief.Next();
  EXPECT_EQ(copied.header.type, wire::kSnapshotEnd);
  EXPECT_TRUE(worker.Send(Push(2, 1, 1), gradient).ok());
  // The answer to the query shows that the contribution has arrived, but has not been answered.
  EXPECT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 3}).header.type, wire::kState);

  peers_[0].reset();  // the chief
  const Received refused = worker.Next();
  EXPECT_EQ(refused.header.type, wire::kRefused);
  EXPECT_EQ(refused.header.sequence, 2u);
  EXPECT_EQ(static_cast<StatusCode>(refused.header.value), StatusCode::kAborted);
  EXPECT_EQ(worker.Ask(Push(2, 1, 1), gradient).header.step, 2) << "the repeated contribution";
  peers_.clear();
  ends.join();
}

// The chief cannot copy the other server's state, so it discards the copy of this server's state.
TEST_F(EndingServerTest, GoesOnIfTheCopyOfAnotherServerFails) {
  StartServers(2);
  const Definition definition = Four(Mode::kAsynchronous);
  Trainer chief(definition);
  ClientOptions options = Chief(definition);
  options.patience = 3s;
  ASSERT_EQ(chief.Join(options), OkStatus());
  ParameterServer& ps = tasks_[0]->ps();
  const int64_t epoch = ps.State().epoch;
  const std::unique_ptr<rpc::Connector> connector = rpc::MakeSocketConnector();
  auto worker = std::make_unique<RawPeer>(*connector, Task("worker", 1), servers_[0]);
  const std::vector<Bytes> gradient = {{.bytes = Floats(4, 1)}};
  ASSERT_EQ(worker->Ask(Push(1, 0, epoch), gradient).header.step, 1);

  std::thread ends([&] { ps.End(kBudget); });
  EXPECT_EQ(worker->Next().header.type, wire::kState);
  tasks_[1]->Kill();
  EXPECT_FALSE(chief.client->TakeSnapshot().ok());
  Received answer = worker->Ask(Push(2, 1, epoch), gradient);
  if (answer.header.type == wire::kRefused) answer = worker->Ask(Push(2, 1, epoch), gradient);
  EXPECT_EQ(answer.header.type, wire::kValues);
  EXPECT_EQ(answer.header.step, 2);
  chief.client.reset();
  worker.reset();
  ends.join();
}

// The first step still waits for a task that was asked to stop, because the task will be restarted.
// The first step does not wait for a task that has left because its data ended.
TEST_F(EndingPeerTest, ATaskThatIsRestartedWhileTheTasksGatherIsAwaited) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  Definition definition = Four(Mode::kSynchronous);
  definition.tasks = {{"chief", 0}, {"worker", 1}, {"worker", 2}};
  definition.start_timeout = 600s;
  ASSERT_EQ(Define(chief, definition, 1), StatusCode::kOk);
  ASSERT_EQ(Fill(chief, {{.bytes = Floats(4, 0)}}, 1), StatusCode::kOk);
  EXPECT_EQ(chief.Ask({.type = wire::kPull, .sequence = 1, .value = 1}).header.type, wire::kValues);
  RawPeer& worker = Connect("worker", 1);
  RawPeer& other = Connect("worker", 2);
  const auto joins = [&](uint64_t sequence) {
    return worker.Ask({.type = wire::kPull, .sequence = sequence, .value = 1}).header.type;
  };
  const auto state = [&] { return other.Ask({.type = wire::kQuery, .sequence = 1}).text; };
  EXPECT_EQ(joins(1), wire::kValues);
  EXPECT_NE(state().find("\"missing\":\"worker 2\""), std::string::npos) << state();
  EXPECT_EQ(worker.CodeOf({.type = wire::kLeave, .flags = wire::kEnding, .sequence = 2}),
            StatusCode::kOk);
  EXPECT_NE(state().find("\"missing\":\"worker 1, worker 2\""), std::string::npos) << state();
  EXPECT_EQ(joins(3), wire::kValues);
  EXPECT_EQ(worker.CodeOf({.type = wire::kLeave, .sequence = 4}), StatusCode::kOk);
  EXPECT_NE(state().find("\"missing\":\"worker 2\""), std::string::npos) << state();
}

// With the sparse form of TF_CONFIG, the server does not know which tasks exist. It then counts a
// batch as drawn even if the step does not need the batch, as if there were backup workers.
TEST_F(EndingPeerTest, ABatchThatIsTooLateCountsAsDrawnIfTheTasksAreUnknown) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  Definition definition = Four(Mode::kSynchronous);
  definition.replicas_to_aggregate = 1;
  ASSERT_EQ(Define(chief, definition, 1), StatusCode::kOk);
  ASSERT_EQ(Fill(chief, {{.bytes = Floats(4, 0)}}, 1), StatusCode::kOk);
  const auto contributes = [](RawPeer& peer, uint64_t drawn) {
    return peer
        .Ask(Push(1, 0, 1), {{.index = wire::kDrawn, .offset = drawn}, {.bytes = Floats(4, 1)}})
        .header;
  };
  EXPECT_EQ(contributes(chief, 3).value, 3);
  const rpc::FrameHeader late = contributes(Connect("worker", 0), 5);
  EXPECT_NE(late.flags & wire::kDropped, 0);
  EXPECT_EQ(late.value, 5);
}

}  // namespace
}  // namespace tfjob::ps
