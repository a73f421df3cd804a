// A training task's side of the parameter servers. It sees named spans, never sockets.
//
//   ASSIGN_OR_RETURN(auto client, ParameterClient::Create(options));
//   ASSIGN_OR_RETURN(StepResult start, client->WaitReady(values));   // joins; values are filled
//   while (start.global_step < max_steps) {
//     … forward, backward …
//     client->BeginStep(gradients, values);
//     client->MarkReady(i);                     // each as soon as backward has it, any order
//     ASSIGN_OR_RETURN(start, client->EndStep());
//   }
//   client->Leave();                            // no more data
//   client->Finish();                           // the chief only, last: every ps process ends
//
// Losses are repaired inside: EndStep reconnects, repeats what was not answered (the servers apply
// it once), waits while the chief refills a server that lost its state, and, in the chief, refills
// it. It reports such waits every 10 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/ps/definition.h"
#include "runtime/ps/events.h"
#include "runtime/ps/snapshot.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/liveness.h"
#include "runtime/rpc/transport.h"

namespace tfjob::ps {

struct ClientOptions {
  std::vector<std::string> servers;  // "host:port" by index
  rpc::Identity identity;            // of this task
  Definition definition;
  bool chief = false;
  // The chief's: the state to fill servers with that have none: the last checkpoint, or, when there
  // is none, initial values. Called in WaitReady and EndStep, on the caller's thread.
  std::function<StatusOr<Snapshot>()> provide_state;
  EventSink on_event;
  // How long WaitReady and EndStep may wait for servers, the chief or other workers; 0: for ever.
  Duration patience{0};
  // Asked every 250 ms of a wait, on the waiting thread: true ends it with Cancelled, and with it the
  // step. (Unlike the end of patience this tells a stop from a stall: let patience be minutes, or
  // for ever, since the lease of a silent peer alone takes 10 s.) The chief, which wants to save,
  // waits up to 5 s longer for the answer to its gradient while all servers are connected, and
  // TakeSnapshot still repairs once.
  std::function<bool()> stop_requested;
  // When a silent server is named, and when it is given up.
  rpc::LivenessRules liveness;
  // How long a refusal (another job, attempt or definition at the address) is taken for a
  // predecessor that is about to end.
  Duration refusal_patience{20s};
  // Null: gRPC with `credentials`. Borrowed.
  rpc::Connector* connector = nullptr;
  rpc::Credentials credentials;
};

struct StepResult {
  int64_t global_step = 0;
  // Updates that others made between reading the values and applying this gradient (asynchronous).
  int64_t staleness = 0;
  // Synchronous: the gradient was too late for its step and was not used.
  bool dropped = false;
  // Synchronous: the step needs another batch from this task; `values` are as they were.
  bool again = false;
  // The servers went back to a checkpoint meanwhile; the gradient was not used.
  bool rolled_back = false;
};

// One caller at a time, but for MarkReady and Peers, which any thread may call.
class ParameterClient {
 public:
  // InvalidArgument for options that do not fit. Connects nothing yet.
  static StatusOr<std::unique_ptr<ParameterClient>> Create(ClientOptions options);
  virtual ~ParameterClient() = default;

  // Connects to every server, waits until all hold state (the chief fills those that have none),
  // joins, and reads all variables into `values` (dense, as Definition::variables; sizes must fit).
  // FailedPrecondition when a server refuses this task (another job, attempt or definition);
  // DeadlineExceeded, naming whom it waited for, when patience ends.
  virtual StatusOr<StepResult> WaitReady(std::span<const std::span<std::byte>> values) = 0;

  // Begins the exchange of one step. gradients[i] has the size of variable i, and is left alone by
  // the caller from MarkReady(i) to the end of EndStep; values[i] receives the fresh value in
  // between. A gradient span may be empty: nothing is sent for it. The outer spans are copied.
  virtual Status BeginStep(std::span<const std::span<const std::byte>> gradients,
                           std::span<const std::span<std::byte>> values) = 0;
  virtual void MarkReady(int variable) = 0;
  // Waits until every server has answered. Marks what was not marked.
  virtual StatusOr<StepResult> EndStep() = 0;

  // BeginStep, all MarkReady, EndStep.
  StatusOr<StepResult> Exchange(std::span<const std::span<const std::byte>> gradients,
                                std::span<const std::span<std::byte>> values);

  // All variables, slots, the step and the ledger. Synchronous: exactly one step's. Asynchronous:
  // each shard with its slots and ledger as of one moment. Between steps only. Repairs losses as
  // EndStep does; if the servers went back meanwhile, the next EndStep says so.
  virtual StatusOr<Snapshot> TakeSnapshot() = 0;
  // Replaces the state of all servers. The chief, between steps.
  virtual Status Restore(const Snapshot& snapshot) = 0;
  // This task computes no further gradients (end of its data, or of its work).
  virtual Status Leave() = 0;
  // Tells every server process to end. Those that cannot be reached, perhaps because they start
  // again, are tried for 20 s, and then left out.
  virtual Status Finish() = 0;

  // The servers, and, as ps 0 knows them, the members.
  virtual std::vector<PeerState> Peers() = 0;
};

}  // namespace tfjob::ps
