// Connects a task to the other tasks of its group. The endpoint must exist before the task's
// server, because it handles two of the server's services: the stream service "group", over which
// the leader and the members communicate, and data connections, which become the sockets of
// communicators. MakeGroup returns this task's Group.
//
//   collectives::Endpoint endpoint(options);
//   auto server = rpc::Server::Start({…, .streams = {{Endpoint::kService, &endpoint}},
//                                        .on_data = &endpoint});
//   auto group = endpoint.MakeGroup({.on_event = …, .stop_requested = …});
//
// Destroy the group first, then the server, then the endpoint.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/collectives/membership/group.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/identity.h"
#include "runtime/rpc/liveness.h"
#include "runtime/rpc/transport.h"
#include "runtime/state/peer.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// A training task.
struct GroupTask {
  std::string type;  // "worker"
  int32_t index = 0;
  std::string address;  // "host:port"; "": unknown (EndpointOptions::least_tasks)
};

// Creates the communicator of a generation. `sockets` has one entry per rank: a connected,
// non-blocking socket to that rank, on which no bytes have been sent or read since the hello. The
// entry for `rank` itself is empty. While a factory waits for other ranks, it calls `interrupt`,
// which returns an error once the generation has ended or this task was asked to stop.
using CommunicatorFactory = std::function<StatusOr<std::unique_ptr<Communicator>>(
    int rank, std::vector<wire::UniqueFd> sockets, const Interrupt& interrupt)>;

struct EndpointOptions {
  rpc::Identity identity;        // this task's identity
  std::vector<GroupTask> tasks;  // all tasks that train; the first one usually leads
  rpc::Credentials credentials;
  CommunicatorFactory make_communicator;
  // When a peer has been silent for liveness.suspect_after, an event names the peer. When it has
  // been silent for the length of the lease, it counts as lost.
  rpc::LivenessRules liveness;
  // An operation that takes longer than this fails with DeadlineExceeded on all tasks of the
  // generation. The message names the task that the others waited for. 0: no limit. Applies only to
  // operations that start after Group::StateIsShared.
  Duration exchange_timeout{0};
  // Allows the group to continue without members that were lost or that depart (leader.h), even
  // without its leader (leader_search.h). If false, the group waits for their replacements. Must be
  // equal in all tasks.
  bool shrinks = false;
  // If greater than 0, the group is elastic: it waits while it has fewer tasks than this (see
  // LeaderRules). `tasks` then contains all tasks that may ever join. The first generation waits
  // for the first listed_tasks of them, which have addresses; the others may have none. Requires
  // `shrinks`. listed_tasks may differ between tasks.
  int least_tasks = 0;
  int listed_tasks = 0;
  Duration start_patience{30s};
  // How often an event names the tasks that the group is waiting for.
  Duration report_interval{10s};
};

struct GroupOptions {
  state::PeerEventSink on_event;
  // Called several times per second during waits, on any thread. Once it returns true, waits fail
  // with Cancelled.
  std::function<bool()> stop_requested;
  // Called on any thread, and must return at once. Returns whether this process was asked to exit.
  // Once it returns true, an operation that waits for another rank fails with Aborted after
  // stop_patience, on this task and on all others. The other tasks then join again.
  std::function<bool()> asked_to_end;
  Duration stop_patience{5s};
  // Waits until this task's folder contains the group's claim (Joining::claim), or returns an error
  // if it does not. Called by Join, on its thread, if this task has no state and the group has
  // trained without it. The others neither wait for the result nor stop training. Null if the group
  // may not shrink.
  std::function<Status(int64_t claim)> find_claim;
};

// Thread-safe.
class Endpoint : public rpc::StreamHandler, public rpc::DataHandler {
 public:
  static constexpr char kService[] = "group";

  // `options.tasks` must contain the task of `options.identity`.
  explicit Endpoint(EndpointOptions options);
  ~Endpoint() override;

  // Returns the group of this task. Call once, after the server has started. The group does not
  // wait for anything until its Join is called.
  std::unique_ptr<Group> MakeGroup(GroupOptions options);

  Status Admit(const rpc::Identity& peer) override;
  void Serve(const rpc::Identity& peer, const std::string& address,
             rpc::Transport& transport) override;

  Status Admit(const rpc::Identity& peer, const std::string& channel) override;
  void Accept(rpc::DataConnection connection) override;

  // The state that the endpoint shares with its group.
  struct State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace tfjob::collectives
