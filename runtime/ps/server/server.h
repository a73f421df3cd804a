// Implements a ps task: stores its shards, applies updates to them and serves them to the training
// tasks. The server starts empty and without the addresses of the other servers. The chief sends
// the definition and these addresses, and then fills the server with its part of the state.
//
//   ASSIGN_OR_RETURN(auto ps, ParameterServer::Create(options));
//   ASSIGN_OR_RETURN(auto server, rpc::Server::Start({.port = 2222, .identity = identity,
//                        .services = {progress}, .streams = {{kParameterService, ps.get()}}}));
//   Status end = ps->WaitUntilFinished();
//   server->Shutdown(1s);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/thread_pool.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/liveness.h"
#include "runtime/rpc/transport.h"
#include "runtime/state/peer.h"

namespace tfjob::ps {

inline constexpr char kParameterService[] = "parameters";

struct ServerOptions {
  rpc::Identity identity;  // task_index is the server's index
  // The job's chief: the only task that may define, fill, hold and copy the state, and finish the
  // job. If the type is "", the chief is unknown: every training task then has these rights, and
  // the task that last filled this server counts as the chief. The server exits when the chief
  // reports a failure.
  std::string chief_type = "chief";
  int32_t chief_index = 0;
  // Returns whether the job may contain this task. The server refuses other tasks. If null, the
  // server accepts every name.
  std::function<bool(const std::string& type, int32_t index)> may_have;
  // A definition that needs more memory than this for values and slots is rejected. Copies of
  // tables that are being saved may use the remaining memory, except for an eighth of this limit.
  int64_t max_bytes = AvailableMemory();
  // Limit on unread response bytes per peer; the server disconnects a peer that exceeds it.
  size_t max_queued_bytes = size_t{16} << 20;
  ThreadPool* pool = nullptr;  // for large updates; borrowed; may be null
  state::PeerEventSink on_event;
  // Connects to ps 0. Borrowed. If null, the server uses TCP sockets with `credentials`.
  rpc::Connector* connector = nullptr;
  rpc::Credentials credentials;
  // Decides when to report a silent peer, and when to break its connection.
  rpc::LivenessRules liveness;
  // Synchronous: the server stops waiting for a worker if other workers have waited for it for this
  // multiple of the median step time, and for at least step_lease_least. 0: never stops waiting.
  double step_lease_factor = 10;
  Duration step_lease_least{60s};
  // The interval at which a server without a state, or without a connected training task, reports
  // the awaited event through on_event.
  Duration report_every{10s};
};

struct ServerState {
  bool ready = false;  // has values
  int64_t epoch = 0;
  int64_t global_step = 0;  // the last step that this server knows of
  int64_t shards = 0;
  int64_t bytes = 0;         // size of values and slots
  int64_t staged_bytes = 0;  // size of the gradients that wait for their step
  // Size of the buffers through which gradients, rows and values pass. Free buffers are kept for
  // reuse up to a sixteenth of max_bytes, and up to 1 GiB.
  int64_t buffer_bytes = 0;
  std::vector<state::PeerState> members;
};

// Thread-safe.
class ParameterServer : public rpc::StreamHandler {
 public:
  static StatusOr<std::unique_ptr<ParameterServer>> Create(ServerOptions options);
  // All streams must be closed, so shut down the rpc::Server first.
  ~ParameterServer() override = default;

  // Waits, without a deadline, until the chief finishes the job or Stop is called (see also
  // ServerOptions::report_every). Returns OK once the chief has finished the job and the peers have
  // been informed; waits at most 2 s for slow peers. Returns state::RunFailure if the chief has
  // reported that the run failed, and Cancelled after Stop.
  virtual Status WaitUntilFinished() = 0;
  virtual void Stop() = 0;
  // Shuts the server down in an orderly way, for a process that was asked to stop. Notifies the
  // training tasks, so that the chief copies the state. Continues to serve until the chief has the
  // copy, every training task has left, or `budget` has elapsed. Then calls Stop. In asynchronous
  // mode, contributions that arrive after the start of the chief's copy are not applied here. Their
  // senders repeat them to the successor of this server.
  virtual void End(Duration budget) = 0;
  virtual ServerState State() = 0;
};

}  // namespace tfjob::ps
