// Runs ps and training tasks as objects in one process, connected over loopback, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "runtime/ps/client/client.h"
#include "runtime/ps/placement.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "runtime/rpc/socket_connector.h"
#include "runtime/wire/test_address.h"

namespace tfjob::ps {

inline rpc::Identity Task(const std::string& type, int index, int64_t incarnation = 1) {
  return {.job_uid = "uid",
          .attempt = 0,
          .task_type = type,
          .task_index = index,
          .incarnation = incarnation};
}

// Defines two variables. All elements of a Trainer's gradients are 1 by default, so SGD with a
// learning rate of 0.5 subtracts 0.5 per step.
inline Definition TwoVariables(Mode mode = Mode::kAsynchronous) {
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {300, 10}}, {.name = "b", .shape = {7}}};
  definition.state.optimizer.learning_rate = 0.5;
  definition.mode = mode;
  definition.max_shard_bytes = 4000;
  return definition;
}

inline state::Snapshot InitialState(const Definition& definition, float value) {
  state::Snapshot snapshot;
  for (const state::Variable& variable : definition.state.variables) {
    Tensor tensor(variable.dtype, variable.shape);
    std::ranges::fill(tensor.data<float>(), value);
    snapshot.variables.push_back(
        state::VariableState::Initial(variable, definition.state.optimizer, std::move(tensor)));
  }
  return snapshot;
}

class Events {
 public:
  state::PeerEventSink sink() {
    return [this](const state::PeerEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event);
      changed_.NotifyAll();
    };
  }
  bool Has(state::PeerEvent::Kind kind) {
    MutexLock lock(mutex_);
    return std::ranges::any_of(events_,
                               [&](const state::PeerEvent& event) { return event.kind == kind; });
  }
  int Count(state::PeerEvent::Kind kind) {
    MutexLock lock(mutex_);
    return static_cast<int>(std::ranges::count(events_, kind, &state::PeerEvent::kind));
  }
  // Returns whether the message of any event contains `text`.
  bool Said(std::string_view text) {
    MutexLock lock(mutex_);
    return std::ranges::any_of(events_, [&](const state::PeerEvent& event) {
      return event.message.find(text) != std::string::npos;
    });
  }
  bool Await(state::PeerEvent::Kind kind, const std::string& peer) {
    return !Message(kind, peer).empty();
  }
  // Waits up to 20 s for an event of `kind` about `peer` and returns its message; "" if none
  // arrives.
  std::string Message(state::PeerEvent::Kind kind, const std::string& peer) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    for (;;) {
      for (const state::PeerEvent& event : events_) {
        if (event.kind == kind && event.peer == peer) return event.message;
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return "";
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<state::PeerEvent> events_ ABSL_GUARDED_BY(mutex_);
};

// A ps task that can be killed and restarted at the same address.
class PsTask {
 public:
  PsTask(int index, std::vector<std::string> servers) : index_(index), servers_(servers) {}
  ~PsTask() { Kill(); }

  void Start(int64_t incarnation = 1) {
    ps_ = *ParameterServer::Create(
        {.identity = Task("ps", index_, incarnation), .on_event = events.sink()});
    const std::string& address = servers_[static_cast<size_t>(index_)];
    const int port = std::stoi(address.substr(address.find(':') + 1));
    StatusOr<std::unique_ptr<rpc::Server>> server =
        rpc::Server::Start({.host = "127.0.0.1",
                            .port = port,
                            .identity = Task("ps", index_, incarnation),
                            .streams = {{kParameterService, ps_.get()}}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Kill() {
    server_.reset();
    ps_.reset();
  }
  ParameterServer& ps() { return *ps_; }

  Events events;

 private:
  const int index_;
  const std::vector<std::string> servers_;
  std::unique_ptr<ParameterServer> ps_;
  std::unique_ptr<rpc::Server> server_;
};

inline std::vector<std::string> TestAddresses(int count) {
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) addresses.push_back(tfjob::wire::TestAddress());
  return addresses;
}

// A training task that owns the memory of its values and gradients.
class Trainer {
 public:
  explicit Trainer(const Definition& definition) : definition_(definition) {
    for (const state::Variable& variable : definition.state.variables) {
      values_.emplace_back(variable.dtype, variable.shape);
      gradients_.emplace_back(variable.dtype, variable.shape);
      std::ranges::fill(gradients_.back().data<float>(), 1.f);
      value_spans_.push_back(values_.back().bytes());
      gradient_spans_.push_back(std::as_const(gradients_.back()).bytes());
    }
  }

  void SetGradients(float value) {
    for (Tensor& gradient : gradients_) std::ranges::fill(gradient.data<float>(), value);
  }
  Status Join(ClientOptions options) {
    options.definition = definition_;
    options.on_event = events.sink();
    ASSIGN_OR_RETURN(client, ParameterClient::Create(std::move(options)));
    ASSIGN_OR_RETURN(last, client->WaitReady(value_spans_));
    return OkStatus();
  }
  Status Train() {
    ASSIGN_OR_RETURN(last, client->Exchange(gradient_spans_, value_spans_));
    return OkStatus();
  }
  // Returns the value that all elements share, or NaN if they differ.
  float Value() {
    const float first = values_[0].data<float>()[0];
    for (Tensor& tensor : values_) {
      for (float value : tensor.data<float>()) {
        if (value != first) return std::nanf("");
      }
    }
    return first;
  }
  std::span<const std::span<std::byte>> value_spans() { return value_spans_; }
  std::span<const std::span<const std::byte>> gradient_spans() { return gradient_spans_; }

  Events events;
  StepResult last;

 private:
  const Definition definition_;
  std::vector<Tensor> values_, gradients_;
  std::vector<std::span<std::byte>> value_spans_;
  std::vector<std::span<const std::byte>> gradient_spans_;

 public:
  // Declared last, so that it is destroyed first: the client reports events and uses the memory
  // until its destruction.
  std::unique_ptr<ParameterClient> client;
};

// Breaks a stream after a given number of frames, as if its connection were lost.
class BreakingConnector : public rpc::Connector {
 public:
  // Lets `frames` more frames be written (or read), then breaks the stream that attempts the
  // next one.
  void BreakAfterWrites(int frames) { writes_ = frames; }
  void BreakAfterReads(int frames) { reads_ = frames; }

  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    ASSIGN_OR_RETURN(rpc::OpenStream stream, inner_->Connect(address, service, self, timeout));
    ++connects;
    stream.transport = std::make_unique<Breaking>(*this, std::move(stream.transport));
    return stream;
  }
  std::atomic<int> connects = 0;

 private:
  class Breaking : public rpc::Transport {
   public:
    Breaking(BreakingConnector& owner, std::unique_ptr<rpc::Transport> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    // Heartbeats and credits are not counted.
    static bool Counts(uint16_t type) { return type < 0xFF00; }
    Status Write(const rpc::OutgoingFrame& frame) override {
      if (Counts(frame.header.type) && owner_.writes_.fetch_sub(1) == 0) {
        for (const rpc::Segment& segment : frame.segments) {
          if (segment.release != nullptr) segment.release(segment.argument);
        }
        inner_->Cancel();
        return Unavailable("broken");
      }
      return inner_->Write(frame);
    }
    Status Read(rpc::IncomingFrame& frame) override {
      RETURN_IF_ERROR(inner_->Read(frame));
      if (Counts(frame.header.type) && owner_.reads_.fetch_sub(1) == 0) {
        inner_->Cancel();
        return Unavailable("broken");
      }
      return OkStatus();
    }
    void Cancel() override { inner_->Cancel(); }

   private:
    BreakingConnector& owner_;
    const std::unique_ptr<rpc::Transport> inner_;
  };

  const std::unique_ptr<rpc::Connector> inner_ = rpc::MakeSocketConnector();
  std::atomic<int> writes_ = -1, reads_ = -1;
};

class ParameterServerTest : public testing::Test {
 protected:
  void StartServers(int count) {
    servers_ = TestAddresses(count);
    for (int i = 0; i < count; ++i) {
      tasks_.push_back(std::make_unique<PsTask>(i, servers_));
      tasks_.back()->Start();
    }
  }
  ClientOptions Chief(const Definition& definition, float value = 100) {
    ClientOptions options = Worker(0);
    options.identity.task_type = "chief";
    options.chief = true;
    options.provide_state = [=] { return InitialState(definition, value); };
    return options;
  }
  ClientOptions Worker(int index, int64_t incarnation = 1) {
    return {.servers = servers_, .identity = Task("worker", index, incarnation), .patience = 30s};
  }

  std::vector<std::string> servers_;
  std::vector<std::unique_ptr<PsTask>> tasks_;
};

}  // namespace tfjob::ps
