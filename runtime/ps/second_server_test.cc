// Tests ps 1 of a synchronous job. The test plays the part of ps 0.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/test_peer.h"

namespace tfjob::ps {
namespace {

// Runs the coordinator of two servers, of which only server 1 sends reports.
class FirstServer : public rpc::StreamHandler {
 public:
  explicit FirstServer(int64_t epoch) { coordinator_.Fill(epoch, 0, 1); }
  std::atomic<int> connections = 0;

  Status Admit(const rpc::Identity&) override { return OkStatus(); }
  void Serve(const rpc::Identity&, const std::string&, rpc::Transport& transport) override {
    ++connections;
    rpc::IncomingFrame frame;
    while (transport.Read(frame).ok()) {
      if (frame.header.type != wire::kParticipant) continue;
      const auto message = protocol::DecodeToCoordinator(frame.ReadString(frame.remaining()));
      ASSERT_TRUE(message);
      // The process registered with ps 0 before it sent frames to another server.
      if (const auto* staged = std::get_if<protocol::StagedReport>(&*message))
        Send(transport, coordinator_.Join(staged->name.worker, staged->name.incarnation));
      Send(transport, coordinator_.OnMessage(1, *message));
    }
  }

 private:
  static void Send(rpc::Transport& transport, const protocol::CoordinatorActions& actions) {
    for (const auto& [server, message] : actions.messages) {
      if (server != 1) continue;
      transport.Write(MakeFrame({.type = wire::kCoordinator}, {{.bytes = Encode(message)}}))
          .IgnoreError();
    }
  }
  protocol::Coordinator coordinator_{2};
};

bool Eventually(const std::function<bool()>& holds) {
  const SteadyTime end = SteadyNow() + 20s;
  while (!holds()) {
    if (SteadyNow() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class SecondServerTest : public RawPeerTest {
 protected:
  SecondServerTest() {
    Start({}, 1);
    chief_ = &Connect("chief", 0);
  }
  void Listen(const std::string& address, FirstServer& first) {
    connector_.Listen(address, kParameterService, Task("ps", 0), first);
  }
  // Fills the server with its part of the state, one of the two variables.
  void Bring(const std::string& first_server, int64_t epoch) {
    Definition definition = Four(Mode::kSynchronous);
    definition.state.variables.push_back({.name = "v", .shape = {4}});
    definition.replicas_to_aggregate = 1;
    ASSERT_EQ(
        chief_->CodeOf({.type = wire::kDefine, .sequence = 1, .value = epoch},
                       {{.bytes = Serialize(Assignment{definition, {first_server, "here"}})}}),
        StatusCode::kOk);
    ASSERT_EQ(Fill(*chief_, {{.index = 1, .bytes = Floats(4, 0)}}, epoch), StatusCode::kOk);
  }
  RawPeer* chief_ = nullptr;
};

// Within one step, each process sends its gradient to this server and crashes before the other
// server has the whole gradient.
TEST_F(SecondServerTest, ProcessesThatCrashWithinAStepDoNotBlockTheirSuccessor) {
  FirstServer first(5);
  Listen("first", first);
  Bring("first", 5);
  int64_t one = 0;
  for (int64_t process = 1; process <= 5; ++process) {
    RawPeer worker(connector_, Task("worker", 0, 100 * process));
    worker.registers = false;
    ASSERT_TRUE(worker.Send({.type = wire::kAnnounce, .value = process}).ok());
    ASSERT_TRUE(worker.Send(Push(1, 0, 5), {{.index = 1, .bytes = Floats(4, 1)}}).ok());
    const Received answer = worker.Ask({.type = wire::kQuery, .sequence = 99});
    ASSERT_EQ(answer.header.type, wire::kState) << process << ": " << answer.text;
    if (process == 1) one = ps_->State().staged_bytes;
  }
  EXPECT_GT(one, 0);
  EXPECT_TRUE(Eventually([&] { return ps_->State().staged_bytes == one; }))
      << ps_->State().staged_bytes << " bytes are staged, one contribution has " << one;
  connector_.Close("first");
}

TEST_F(SecondServerTest, FollowsPs0ToANewAddress) {
  FirstServer before(5), after(6);
  Listen("before", before);
  Listen("after", after);
  Bring("before", 5);
  EXPECT_TRUE(Eventually([&] { return before.connections == 1; }));
  Bring("after", 6);
  EXPECT_TRUE(Eventually([&] { return after.connections == 1; }));
  EXPECT_EQ(before.connections, 1);
  connector_.Close("before");
  connector_.Close("after");
}

}  // namespace
}  // namespace tfjob::ps
