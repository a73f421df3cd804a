// Provides a client for tests, connected to a server that follows a script. Private to this
// package.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/ps/client/client.h"
#include "runtime/ps/client/scripted_server.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {

// Defines two variables, of 24 and 4 bytes, each with one shard.
inline Definition Small() {
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {2, 3}}, {.name = "b", .shape = {1}}};
  return definition;
}

inline Answer Values(rpc::FrameHeader header, float value) {
  header.type = wire::kValues;
  header.flags |= wire::kLast;
  return {header, {{.index = 0, .bytes = Floats(6, value)}, {.index = 1, .bytes = Floats(1, 8)}}};
}

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    server_.body = StrCat(R"({"fingerprint":")", Fingerprint(Small()), R"(","servers":1})");
    connector_.Listen("here", kParameterService, Task("ps", 0), server_);
    server_.script[wire::kPull] = {{Values({.step = 3}, 5)}};
    options_ = {.servers = {"here"},
                .identity = Task("worker", 1),
                .definition = Small(),
                .on_event = events_.sink(),
                .patience = 8s,  // shorter than the lease
                .refusal_patience = Duration(0),
                .connector = &connector_};
  }
  ~ClientTest() override {
    client_.reset();
    connector_.Close("here");
  }

  StatusOr<StepResult> Join() {
    client_ = *ParameterClient::Create(options_);
    return client_->WaitReady(values_);
  }
  StatusOr<StepResult> Step() { return client_->Exchange(gradients_, values_); }

  rpc::PipeConnector connector_;
  ScriptedServer server_;
  Events events_;
  ClientOptions options_;
  std::unique_ptr<ParameterClient> client_;
  float w_[6] = {}, b_[1] = {};
  const float d_w_[6] = {1, 2, 3, 4, 5, 6}, d_b_[1] = {7};
  std::vector<std::span<std::byte>> values_ = {std::as_writable_bytes(std::span(w_)),
                                               std::as_writable_bytes(std::span(b_))};
  std::vector<std::span<const std::byte>> gradients_ = {std::as_bytes(std::span(d_w_)),
                                                        std::as_bytes(std::span(d_b_))};
};

class ChiefTest : public ClientTest {
 protected:
  ChiefTest() {
    options_.identity = Task("chief", 0);
    options_.chief = true;
    options_.definition.state.optimizer.momentum = 0.5;
    options_.provide_state = [this] { return snapshot_; };
    snapshot_ = InitialState(options_.definition, 2);
    snapshot_.global_step = 30;
    snapshot_.ledger = "0 worker 0 1 7\n";
    server_.state.flags = 0;
  }
  state::Snapshot snapshot_;
};

}  // namespace tfjob::ps
