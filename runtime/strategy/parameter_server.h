// The variables live on parameter servers. Each training task computes gradients on its batches, sends each as soon as
// backward has it, and receives fresh values: asynchronously (applied as they come) or synchronously (averaged).
#pragma once

#include "runtime/ps/client/client.h"
#include "runtime/strategy/strategy.h"

namespace tfjob::strategy {

struct ParameterServerOptions {
  StrategyOptions common;
  std::vector<std::string> servers;  // "host:port" by index
  rpc::Identity identity;            // of this task
  bool chief = false;
  ps::EventSink on_event;
  // Asked several times a second by every wait; true ends it with Cancelled.
  std::function<bool()> stop_requested;
  Duration patience{0};                 // 0: wait for ever, with reports
  rpc::Connector* connector = nullptr;  // null: gRPC
  rpc::Credentials credentials;
};

StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(ParameterServerOptions options);

}  // namespace tfjob::strategy
