// The training task's end of the exchange: gives it access to the parameter servers. The caller
// sees spans, never sockets.
//
//   ASSIGN_OR_RETURN(auto client, ParameterClient::Create(options));
//   ASSIGN_OR_RETURN(StepResult start, client->WaitReady(values));   // joins; values are filled
//   while (start.global_step < max_steps) {
//     … forward, backward …
//     client->BeginStep(gradients, values);
//     client->MarkReady(i);                     // as soon as backward has gradient i, any order
//     ASSIGN_OR_RETURN(start, client->EndStep());
//   }
//   client->Leave();                            // no more data
//   client->Finish();                           // chief only, last: every ps process exits
//
// EndStep repairs losses: it reconnects, repeats what was not answered (the servers apply it once)
// and waits while the chief refills a server that lost its state; in the chief, it does the refill.
// It reports such waits every 10 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/ps/definition.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/liveness.h"
#include "runtime/rpc/transport.h"
#include "runtime/state/peer.h"
#include "runtime/state/snapshot.h"

namespace tfjob::ps {

struct ClientOptions {
  std::vector<std::string> servers;  // "host:port" by index
  rpc::Identity identity;            // of this task
  Definition definition;
  bool chief = false;
  // Chief only. Returns the state for servers that have none: the last checkpoint, or initial
  // values if there is none. Called in WaitReady and EndStep, on the caller's thread.
  std::function<StatusOr<state::Snapshot>()> provide_state;
  state::PeerEventSink on_event;
  // How long WaitReady and EndStep may wait for servers, the chief or other workers; 0: forever.
  Duration patience{0};
  // Called every 250 ms of a wait, on the waiting thread. If it returns true, the wait ends with
  // Cancelled, and the step with it. Use this, not a short patience, to stop a task: it tells a
  // stop from a stall. Patience should be minutes or unlimited, since the lease of a silent peer
  // alone takes 10 s. The chief, which wants to save, waits up to 5 s longer for the answer to its
  // gradient while all servers are connected, and TakeSnapshot still repairs once.
  std::function<bool()> stop_requested;
  // When a silent server is reported, and when its connection is given up.
  rpc::LivenessRules liveness;
  // For how long a refusal (another job, attempt or definition at the address) is attributed to a
  // predecessor that is about to exit.
  Duration refusal_patience{20s};
  // Null: gRPC with `credentials`. Borrowed.
  rpc::Connector* connector = nullptr;
  rpc::Credentials credentials;
};

struct StepResult {
  int64_t global_step = 0;
  // Asynchronous: updates by other tasks between reading the values and applying this gradient.
  int64_t staleness = 0;
  // Synchronous: the gradient was too late for its step and was not used.
  bool dropped = false;
  // Synchronous: the step needs another batch from this task; `values` are unchanged.
  bool again = false;
  // The servers were rolled back to a checkpoint meanwhile; the gradient was not used.
  bool rolled_back = false;
};

// For one caller at a time, except MarkReady and Peers, which any thread may call.
class ParameterClient {
 public:
  // Returns InvalidArgument for invalid options. Does not connect yet.
  static StatusOr<std::unique_ptr<ParameterClient>> Create(ClientOptions options);
  virtual ~ParameterClient() = default;

  // Connects to every server, waits until all hold state (the chief fills those that have none),
  // joins, and reads all variables into `values` (dense, in the order of TrainingState::variables;
  // sizes must match). Returns FailedPrecondition if a server refuses this task (another job,
  // attempt or definition), and DeadlineExceeded, naming the awaited servers, when patience ends.
  virtual StatusOr<StepResult> WaitReady(std::span<const std::span<std::byte>> values) = 0;

  // Begins the exchange of one step. gradients[i] has the size of variable i; the caller must not
  // change it from MarkReady(i) until EndStep returns. values[i] receives the fresh value in that
  // time. An empty gradient span sends no update for its variable. The outer spans are copied.
  virtual Status BeginStep(std::span<const std::span<const std::byte>> gradients,
                           std::span<const std::span<std::byte>> values) = 0;
  virtual void MarkReady(int variable) = 0;
  // Marks the remaining gradients ready and waits until every server has answered.
  virtual StatusOr<StepResult> EndStep() = 0;

  // BeginStep, all MarkReady, EndStep.
  StatusOr<StepResult> Exchange(std::span<const std::span<const std::byte>> gradients,
                                std::span<const std::span<std::byte>> values);

  // Returns all variables, slots, the step and the ledger. Synchronous: of exactly one step.
  // Asynchronous: each shard with its slots and ledger as of one moment. Call between steps only.
  // Repairs losses as EndStep does; if the servers were rolled back meanwhile, the next EndStep
  // reports it.
  virtual StatusOr<state::Snapshot> TakeSnapshot() = 0;
  // Replaces the state of all servers. Chief only, between steps.
  virtual Status Restore(const state::Snapshot& snapshot) = 0;
  // Announces that this task computes no further gradients (its data or its work has ended).
  virtual Status Leave() = 0;
  // Makes every server process exit. Retries unreachable servers, which may be restarting, for
  // 20 s, then skips them.
  virtual Status Finish() = 0;

  // Returns the servers, and the members as ps 0 knows them.
  virtual std::vector<state::PeerState> Peers() = 0;
};

}  // namespace tfjob::ps
