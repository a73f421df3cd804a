// Tests that the chief's memory is safe from a server that knows the protocol and violates it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/ps/client/test_client.h"

namespace tfjob::ps {
namespace {

constexpr int64_t kElements = 6 << 20;  // more bytes than a connection sends without credit

Definition One(int64_t elements) {
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {elements}}};
  definition.max_shard_bytes = int64_t{1} << 40;
  return definition;
}

class HostileServerTest : public testing::Test {
 protected:
  ~HostileServerTest() override { connector_.Close("here"); }
  Status Join(Trainer& chief, rpc::StreamHandler& server, Duration patience) {
    connector_.Listen("here", kParameterService, Task("ps", 0), server);
    return chief.Join({.servers = {"here"},
                       .identity = Task("chief", 0),
                       .chief = true,
                       .provide_state = [this] { return InitialState(definition_, 3); },
                       .patience = patience,
                       .connector = &connector_});
  }
  static Answer Part(float value) {
    return {{.type = wire::kShard}, {{.bytes = Floats(1, value)}}};
  }

  Definition definition_ = One(1);
  rpc::PipeConnector connector_;
};

class CopyTest : public HostileServerTest {
 protected:
  CopyTest() {
    server_.body = StrCat(R"({"fingerprint":")", Fingerprint(definition_), R"(","servers":1})");
    server_.script[wire::kPull] = {
        {{{.type = wire::kValues, .flags = wire::kLast}, {{.bytes = Floats(1, 1)}}}}};
  }
  const Answer end_{{.type = wire::kSnapshotEnd}, {{}}};
  ScriptedServer server_;
};

TEST_F(CopyTest, NothingIsWrittenIntoACopyThatHasEnded) {
  constexpr int kCopies = 100;
  for (int i = 0; i < kCopies; ++i)
    server_.script[wire::kSnapshot].push_back({Part(7), end_, Part(9)});
  Trainer chief(definition_);
  ASSERT_EQ(Join(chief, server_, 20s), OkStatus());
  std::vector<state::Snapshot> copies;
  for (int i = 0; i < kCopies; ++i) {
    StatusOr<state::Snapshot> copy = chief.client->TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    copies.push_back(*std::move(copy));
  }
  chief.client.reset();
  for (const state::Snapshot& copy : copies) EXPECT_EQ(copy.variables[0].value.data<float>()[0], 7);
}

TEST_F(CopyTest, AnAnswerThatIsNotTheEndOfACopyDoesNotEndIt) {
  server_.script[wire::kSnapshot] = {{{{.type = wire::kReply}, {}}}, {Part(7), end_}};
  Trainer chief(definition_);
  ASSERT_EQ(Join(chief, server_, 20s), OkStatus());
  const StatusOr<state::Snapshot> copy = chief.client->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->variables[0].value.data<float>()[0], 7);
  chief.client.reset();
}

// Confirms a fill after its first frame, and then stops reading.
class HastyServer : public rpc::StreamHandler {
 public:
  std::atomic<bool> released = false;

  Status Admit(const rpc::Identity&) override { return OkStatus(); }
  void Serve(const rpc::Identity&, const std::string&, rpc::Transport& transport) override {
    rpc::IncomingFrame frame;
    rpc::FrameHeader define;
    while (transport.Read(frame).ok()) {
      const rpc::FrameHeader request = frame.header;
      if (request.type == wire::kQuery && request.sequence != 0) {
        Send(transport, {.type = wire::kState, .sequence = request.sequence});
      } else if (request.type == wire::kDefine) {
        define = request;
        Send(transport, {.type = wire::kReply, .sequence = request.sequence});
      } else if (request.type == wire::kFill) {
        Send(transport, {.type = wire::kReply, .sequence = define.sequence + 1});
        while (!released) std::this_thread::sleep_for(1ms);
      }
    }
  }

 private:
  static void Send(rpc::Transport& transport, const rpc::FrameHeader& header) {
    transport.Write(MakeFrame(header, {{.bytes = "{}"}})).IgnoreError();
  }
};

// If the client believed such a confirmation, the caller would free the state while the connection
// still reads it.
TEST_F(HostileServerTest, AFillThatHasNotBeenSentIsNotConfirmed) {
  definition_ = One(kElements);
  HastyServer server;
  Trainer chief(definition_);
  EXPECT_FALSE(Join(chief, server, 1s).ok());
  EXPECT_TRUE(chief.events.Said("it confirmed the state before all of it was sent"));
  server.released = true;
  chief.client.reset();
}

}  // namespace
}  // namespace tfjob::ps
