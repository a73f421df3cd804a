// Tests that a server that deliberately violates the protocol cannot corrupt the chief's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
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
  ~CopyTest() override { connector_.Close("here"); }  // its thread uses `server_`
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

// If the client accepted such a confirmation, the caller would free the state while the connection
// still reads it.
TEST_F(HostileServerTest, AFillThatHasNotBeenSentIsNotConfirmed) {
  definition_ = One(kElements);
  HastyServer server;
  Trainer chief(definition_);
  EXPECT_FALSE(Join(chief, server, 1s).ok());
  EXPECT_TRUE(chief.events.Said("it confirmed the state before all of it was sent"));
  server.released = true;
  chief.client.reset();
  connector_.Close("here");  // its thread uses `server`
}

// Answers a contribution after its first frame, and stops reading until `released`. Then checks
// that the rest of the contribution consists of ones.
class EarlyServer : public rpc::StreamHandler {
 public:
  explicit EarlyServer(const Definition& definition)
      : body_(StrCat(R"({"fingerprint":")", Fingerprint(definition), R"(","servers":1})")) {}
  std::atomic<bool> released = false, ended = false;
  std::atomic<int64_t> others = 0;

  Status Admit(const rpc::Identity&) override { return OkStatus(); }
  void Serve(const rpc::Identity&, const std::string&, rpc::Transport& transport) override {
    rpc::IncomingFrame frame;
    while (transport.Read(frame).ok()) {
      const uint64_t sequence = frame.header.sequence;
      if (frame.header.type == wire::kQuery && sequence != 0) {
        Send(transport, {.type = wire::kState, .flags = wire::kReady, .sequence = sequence}, body_);
      } else if (frame.header.type == wire::kRegister) {
        Send(transport, {.type = wire::kRegistered, .sequence = sequence, .step = 1}, "");
      } else if (frame.header.type == wire::kPull) {
        SendValues(transport, sequence);
      } else if (frame.header.type == wire::kPush) {
        Check(frame);
        if (released) continue;
        SendValues(transport, sequence);
        while (!released) std::this_thread::sleep_for(1ms);
      }
    }
    ended = true;
  }

 private:
  static void Send(rpc::Transport& transport, const rpc::FrameHeader& header,
                   const std::string& bytes) {
    transport.Write(MakeFrame(header, {{.bytes = bytes}})).IgnoreError();
  }
  static void SendValues(rpc::Transport& transport, uint64_t sequence) {
    Send(transport, {.type = wire::kValues, .flags = wire::kLast, .sequence = sequence},
         Floats(kElements, 5));
  }
  void Check(rpc::IncomingFrame& frame) {
    const std::string bytes = frame.ReadString(frame.remaining());
    std::vector<float> gradient(bytes.size() / sizeof(float));
    std::memcpy(gradient.data(), bytes.data(), gradient.size() * sizeof(float));
    others += std::ranges::count_if(gradient, [](float value) { return value != 1; });
  }

  const std::string body_;
};

// The contribution is larger than the socket's buffers, so the writer is still reading it when the
// answer arrives.
TEST(EarlyAnswerTest, TheCallerMayChangeItsGradientsOnceTheStepHasEnded) {
  const Definition definition = One(kElements);
  EarlyServer early(definition);
  const std::string address = TestAddresses(1)[0];
  StatusOr<std::unique_ptr<rpc::Server>> server =
      rpc::Server::Start({.host = "127.0.0.1",
                          .port = std::stoi(address.substr(address.find(':') + 1)),
                          .identity = Task("ps", 0),
                          .streams = {{kParameterService, &early}}});
  ASSERT_TRUE(server.ok()) << server.status();
  Trainer worker(definition);
  ASSERT_EQ(worker.Join({.servers = {address}, .identity = Task("worker", 0), .patience = 20s}),
            OkStatus());
  ASSERT_EQ(worker.Train(), OkStatus());
  EXPECT_EQ(worker.Value(), 5) << "the answer counts, although it came early";
  worker.SetGradients(9);
  early.released = true;
  const SteadyTime deadline = SteadyNow() + 20s;
  while (!early.ended && SteadyNow() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(early.ended) << "the connection cannot be used any more";
  EXPECT_EQ(early.others, 0);
  EXPECT_TRUE(worker.events.Said("it did not read the rest of a gradient"));
  worker.client.reset();
}

}  // namespace
}  // namespace tfjob::ps
