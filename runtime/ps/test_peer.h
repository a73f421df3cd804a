// Implements a peer that sends the frames that a test specifies, and a server for such peers.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ps/test_frames.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {

struct Received {
  rpc::FrameHeader header;
  std::string text;
};

// A peer that sends the frames that a test specifies.
class RawPeer {
 public:
  RawPeer(rpc::Connector& connector, const rpc::Identity& identity,
          const std::string& address = "here") {
    StatusOr<rpc::OpenStream> stream =
        connector.Connect(address, kParameterService, identity, Duration(20s));
    admitted = stream.status();
    if (stream.ok()) transport_ = std::move(stream->transport);
  }
  // Sends a frame. Registers the process before its first contribution, unless the test does so.
  Status Send(const rpc::FrameHeader& header, const std::vector<Bytes>& parts = {}) {
    if (header.type == wire::kRegister) registers = false;
    if ((header.type == wire::kPush || header.type == wire::kPull ||
         header.type == wire::kPullRows) &&
        std::exchange(registers, false)) {
      RETURN_IF_ERROR(transport_->Write({.header = {.type = wire::kRegister}, .segments = {}}));
      EXPECT_NE(Next().header.type, 0);
    }
    return transport_->Write(MakeFrame(header, parts));
  }
  // Returns the next frame that is neither a heartbeat nor a grant of credit; type 0 if the stream
  // is broken.
  Received Next() {
    rpc::IncomingFrame frame;
    do {
      if (!transport_->Read(frame).ok()) return {};
    } while (frame.header.type >= 0xFF00);
    return {frame.header, frame.ReadString(frame.remaining())};
  }
  Received Ask(const rpc::FrameHeader& header, const std::vector<Bytes>& parts = {}) {
    return Send(header, parts).ok() ? Next() : Received();
  }
  StatusCode CodeOf(const rpc::FrameHeader& header, const std::vector<Bytes>& parts = {}) {
    const Received answer = Ask(header, parts);
    EXPECT_TRUE(answer.header.type == wire::kReply || answer.header.type == wire::kRefused)
        << answer.header.type;
    return static_cast<StatusCode>(answer.header.value);
  }

  Status admitted;
  bool registers = true;

 private:
  std::unique_ptr<rpc::Transport> transport_;
};

inline rpc::FrameHeader Push(uint64_t sequence, int64_t step, int64_t epoch) {
  return {.type = wire::kPush,
          .flags = wire::kFirst,
          .sequence = sequence,
          .step = step,
          .value = epoch};
}

// Defines one variable of 16 bytes, for one server.
inline Definition Four(Mode mode) {
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {4}}};
  definition.state.optimizer.learning_rate = 1;
  definition.mode = mode;
  definition.replicas_to_aggregate = mode == Mode::kSynchronous ? 2 : 1;
  return definition;
}

// Runs a server that peers reach over pipes.
class RawPeerTest : public testing::Test {
 protected:
  void Start(ServerOptions options = {}, int index = 0) {
    options.identity = Task("ps", index);
    options.connector = &connector_;
    ps_ = *ParameterServer::Create(std::move(options));
    connector_.Listen("here", kParameterService, Task("ps", index), *ps_);
  }
  ~RawPeerTest() override { connector_.Close("here"); }

  // Connects a new peer. The peers must be destroyed before the connector.
  RawPeer& Connect(const std::string& type, int index) {
    return *peers_.emplace_back(std::make_unique<RawPeer>(connector_, Task(type, index)));
  }
  static std::vector<Bytes> Text(const Definition& definition) {
    return {{.bytes = Serialize(Assignment{definition, {"here"}})}};
  }
  static StatusCode Define(RawPeer& chief, const Definition& definition, int64_t epoch) {
    return chief.CodeOf({.type = wire::kDefine, .sequence = 1, .value = epoch}, Text(definition));
  }
  static StatusCode Fill(RawPeer& chief, const std::vector<Bytes>& parts, int64_t epoch,
                         int64_t step = 0) {
    EXPECT_TRUE(chief.Send({.type = wire::kFill, .value = epoch}, parts).ok());
    return chief.CodeOf({.type = wire::kFilled, .sequence = 2, .step = step, .value = epoch},
                        {{.bytes = ""}});
  }
  static void Bring(RawPeer& chief, Mode mode, int64_t epoch) {
    ASSERT_EQ(Define(chief, Four(mode), epoch), StatusCode::kOk);
    ASSERT_EQ(Fill(chief, {{.bytes = Floats(4, 0)}}, epoch), StatusCode::kOk);
  }

  rpc::PipeConnector connector_;
  std::unique_ptr<ParameterServer> ps_;
  std::vector<std::unique_ptr<RawPeer>> peers_;
};

}  // namespace tfjob::ps
