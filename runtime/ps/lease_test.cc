// Tests that a synchronous job keeps running if a worker stops contributing but stays connected,
// and that the worker is included again when it recovers.
#include "runtime/ps/test_tasks.h"

namespace tfjob::ps {
namespace {

class LeaseTest : public ParameterServerTest {
 protected:
  void StartWithLease(Duration least) {
    servers_ = TestAddresses(2);
    for (int i = 0; i < 2; ++i) {
      const rpc::Identity self = Task("ps", i);
      ps_.push_back(*ParameterServer::Create({.identity = self,
                                              .on_event = events_.sink(),
                                              .step_lease_factor = 1,
                                              .step_lease_least = least}));
      const std::string& address = servers_[static_cast<size_t>(i)];
      const int port = std::stoi(address.substr(address.find(':') + 1));
      StatusOr<std::unique_ptr<rpc::Server>> server =
          rpc::Server::Start({.host = "127.0.0.1",
                              .port = port,
                              .identity = self,
                              .streams = {{kParameterService, ps_.back().get()}}});
      ASSERT_TRUE(server.ok()) << server.status();
      listening_.push_back(*std::move(server));
    }
  }
  // Returns the health of the worker as ps 0 reports it.
  state::PeerHealth HealthOf(const std::string& task) {
    for (const state::PeerState& member : ps_[0]->State().members) {
      if (member.task == task) return member.health;
    }
    return state::PeerHealth::kUnknown;
  }

  Events events_;
  std::vector<std::unique_ptr<ParameterServer>> ps_;
  std::vector<std::unique_ptr<rpc::Server>> listening_;
};

TEST_F(LeaseTest, AStuckWorkerIsNotWaitedForAndTakesPartAgainWhenItIsBack) {
  StartWithLease(300ms);
  Definition definition = TwoVariables(Mode::kSynchronous);
  definition.replicas_to_aggregate = 2;
  Trainer chief(definition), worker(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ASSERT_EQ(worker.Join(Worker(1)), OkStatus());
  // The worker is stuck with its first batch, so the chief computes two batches per step.
  int computed = 0;
  while (chief.last.global_step < 3) {
    ASSERT_EQ(chief.Train(), OkStatus());
    ++computed;
  }
  EXPECT_EQ(computed, 6);
  EXPECT_FLOAT_EQ(chief.Value(), 98.5);
  const std::string stuck = events_.Message(state::PeerEvent::Kind::kStuck, "worker 1");
  EXPECT_TRUE(stuck.starts_with("worker 1 (127.0.0.1:")) << stuck;
  EXPECT_NE(stuck.find("has kept step 0 waiting for"), std::string::npos) << stuck;
  EXPECT_EQ(HealthOf("/job:worker/task:1"), state::PeerHealth::kStuck);

  // The worker has recovered. Its gradient belongs to step 0.
  ASSERT_EQ(worker.Train(), OkStatus());
  EXPECT_TRUE(worker.last.dropped);
  EXPECT_EQ(worker.last.global_step, 3);
  EXPECT_FLOAT_EQ(worker.Value(), 98.5);
  EXPECT_TRUE(events_.Said("contributes again"));
  EXPECT_EQ(HealthOf("/job:worker/task:1"), state::PeerHealth::kConnected);
  std::thread other([&] { EXPECT_EQ(worker.Train(), OkStatus()); });
  ASSERT_EQ(chief.Train(), OkStatus());
  other.join();
  EXPECT_EQ(chief.last.global_step, 4);
  EXPECT_FALSE(worker.last.dropped);
  EXPECT_FALSE(chief.last.again);
}

}  // namespace
}  // namespace tfjob::ps
