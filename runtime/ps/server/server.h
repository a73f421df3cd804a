// A ps task: shards, their updates, and the service around them. It starts empty, and knows of no other
// server; the chief defines it, tells it of the others, and fills it.
//
//   ASSIGN_OR_RETURN(auto ps, ParameterServer::Create(options));
//   ASSIGN_OR_RETURN(auto server, rpc::Server::Start({.port = 2222, .identity = identity,
//                        .services = {progress}, .streams = {{kParameterService, ps.get()}}}));
//   Status end = ps->WaitUntilFinished();
//   server->Shutdown(1s);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/thread_pool.h"
#include "runtime/ps/events.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/liveness.h"
#include "runtime/rpc/transport.h"

namespace tfjob::ps {

inline constexpr char kParameterService[] = "parameters";

struct ServerOptions {
  rpc::Identity identity;      // task_index is the server's number
  ThreadPool* pool = nullptr;  // helps with large updates; borrowed; may be null
  EventSink on_event;
  // How ps 0 is reached. Null: gRPC with `credentials`. Borrowed.
  rpc::Connector* connector = nullptr;
  rpc::Credentials credentials;
  // When a silent peer is named, and when it is given up.
  rpc::LivenessRules liveness;
  // How often the server tells on_event whom it waits for, while it has no state or serves nobody.
  Duration report_every{10s};
};

struct ServerState {
  bool ready = false;  // holds values
  int64_t epoch = 0;
  int64_t global_step = 0;  // as this server knows it
  int64_t shards = 0;
  int64_t bytes = 0;  // of values and slots
  std::vector<PeerState> members;
};

// Thread-safe.
class ParameterServer : public rpc::StreamHandler {
 public:
  static StatusOr<std::unique_ptr<ParameterServer>> Create(ServerOptions options);
  // Streams must have ended: shut the rpc::Server down first.
  ~ParameterServer() override = default;

  // OK when the chief said so, and all peers were told; Cancelled after Stop. Without a deadline:
  // see ServerOptions::report_every.
  virtual Status WaitUntilFinished() = 0;
  virtual void Stop() = 0;
  virtual ServerState State() = 0;
};

}  // namespace tfjob::ps
