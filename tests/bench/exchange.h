// Runs a worker and its parameter servers in one process, connected by loopback TCP, and exchanges
// gradients for values. Used by benchmarks.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "tests/bench/report.h"

namespace tfjob::bench {

template <typename T>
T Must(StatusOr<T> result) {
  ENFORCE(result.ok(), result.status().ToString());
  return *std::move(result);
}

inline rpc::Identity Task(const std::string& type, int index = 0) {
  return {.job_uid = "bench",
          .attempt = 0,
          .task_type = type,
          .task_index = index,
          .incarnation = rpc::NewIncarnation()};
}

// Runs both ends of an exchange in this process.
class Exchange {
 public:
  struct Size {
    int64_t bytes = 0;  // total size of the gradients, and also of the values
    int servers = 1;    // number of servers, among which the bytes are divided
    int64_t variable_bytes = int64_t{4} << 20;
  };

  explicit Exchange(const Size& size) {
    std::vector<std::string> addresses;
    for (int i = 0; i < size.servers; ++i) addresses.push_back(Serve(i));
    const int64_t variable_bytes =
        std::min(size.variable_bytes, std::max<int64_t>(4, size.bytes / size.servers));
    ps::Definition definition;
    for (int64_t at = 0; at < size.bytes; at += variable_bytes) {
      const int64_t count = std::min(variable_bytes, size.bytes - at) / 4;
      definition.state.variables.push_back({.name = StrCat("v", at), .shape = {count}});
      values_.emplace_back(DType::kFloat32, Shape({count}));
      gradients_.emplace_back(DType::kFloat32, Shape({count}));
      std::ranges::fill(gradients_.back().data<float>(), 1.f);
      value_spans_.push_back(values_.back().bytes());
      gradient_spans_.push_back(std::as_const(gradients_.back()).bytes());
    }
    client_ = Must(ps::ParameterClient::Create(
        {.servers = addresses,
         .identity = Task("worker"),
         .definition = definition,
         .chief = true,
         .provide_state = [definition]() -> StatusOr<state::Snapshot> {
           state::Snapshot snapshot;
           for (const state::Variable& variable : definition.state.variables) {
             snapshot.variables.push_back(state::VariableState::Initial(
                 variable, definition.state.optimizer, Tensor(variable.dtype, variable.shape)));
           }
           return snapshot;
         }}));
    Must(client_->WaitReady(value_spans_));
  }
  ~Exchange() {
    client_.reset();
    rpc_.clear();
  }

  void Run() { Must(client_->Exchange(gradient_spans_, value_spans_)); }

 private:
  std::string Serve(int index) {
    ps_.push_back(
        Must(ps::ParameterServer::Create({.identity = Task("ps", index), .chief_type = "worker"})));
    rpc_.push_back(
        Must(rpc::Server::Start({.host = "127.0.0.1",
                                 .identity = Task("ps", index),
                                 .streams = {{ps::kParameterService, ps_.back().get()}}})));
    return StrCat("127.0.0.1:", rpc_.back()->port());
  }

  std::vector<std::unique_ptr<ps::ParameterServer>> ps_;
  std::vector<std::unique_ptr<rpc::Server>> rpc_;
  std::unique_ptr<ps::ParameterClient> client_;
  std::vector<Tensor> values_, gradients_;
  std::vector<std::span<std::byte>> value_spans_;
  std::vector<std::span<const std::byte>> gradient_spans_;
};

template <typename Work>
Times Measure(Work& work, int rounds) {
  work.Run();  // warms up TCP windows, pools and memory pages
  Stopwatch watch;
  for (int i = 0; i < rounds; ++i) work.Run();
  return watch.Elapsed();
}

}  // namespace tfjob::bench
