// Provides a training task with access to the parameter servers. The caller passes spans of its own
// memory. The client manages the connections.
//
//   ASSIGN_OR_RETURN(auto client, ParameterClient::Create(options));
//   ASSIGN_OR_RETURN(StepResult start, client->WaitReady(values));   // joins; values are filled
//   while (start.global_step < max_steps) {
//     client->PullRows(indices, rows);        // only if the definition has tables
//     … forward, backward …
//     client->BeginStep(gradients, values, start.drawn + 1);
//     client->MarkReady(i);                     // as soon as backward has gradient i, any order
//     ASSIGN_OR_RETURN(start, client->EndStep());
//   }
//   client->Leave();                            // no more data
//   client->Finish();                           // chief only, last: every ps process exits
//
// EndStep recovers from lost connections and servers: it reconnects, repeats unanswered requests
// and gradients (the servers apply each gradient only once), and waits while the chief refills a
// server that lost its state. In the chief, EndStep refills the server itself. The client connects
// to, queries, fills and copies all servers in parallel. During a wait, the client reports the
// awaited event and tasks every 10 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  // Chief only. Returns the state for servers that have none: the last checkpoint or, without a
  // checkpoint, the initial values. Called by WaitReady, EndStep and TakeSnapshot, on the caller's
  // thread.
  std::function<StatusOr<state::Snapshot>()> provide_state;
  state::PeerEventSink on_event;
  // How long WaitReady, EndStep and TakeSnapshot may wait for servers, the chief or other workers.
  // 0 means forever.
  Duration patience{0};
  // Called every 250 ms during a wait, on the waiting thread. If this function returns true, the
  // wait stops and its step returns Cancelled. To stop a task, use this function rather than a
  // short `patience`, which cannot distinguish a stop from a stall. `patience` should be minutes or
  // unlimited, because detecting a silent peer alone takes 10 s (the lease). While all servers are
  // connected, the chief and, in asynchronous mode, every task waits up to stop_patience longer for
  // the answer to its gradient. The chief must still be able to save after a stop, so TakeSnapshot
  // makes one attempt to recover lost servers.
  std::function<bool()> stop_requested;
  // How long a stopped task may wait for the answer to its gradient. The default is longer than an
  // exchange takes, and shorter than a process's grace period.
  Duration stop_patience{5s};
  // Asynchronous only. BeginStep sends no contribution that is staler than this limit. It queries
  // ps 0 for the number of updates that other tasks have made since this task read its values. If
  // this number exceeds the limit, or is unknown because the connection to ps 0 was lost during the
  // last step, BeginStep drops the whole contribution and only reads fresh values. Unlimited by
  // default.
  std::optional<int64_t> max_staleness;
  // Chief only, synchronous mode. Called by EndStep, on the caller's thread, once a server has been
  // shutting down for stop_patience and the step is still unanswered. Such a step may be waiting
  // for a stuck worker, and the server may exit before the worker answers. The function may call
  // TakeSnapshot, which then copies the state after the last committed step. The step continues
  // afterwards.
  std::function<void()> on_late_step;
  // Decides when to report a silent server, and when to break its connection.
  rpc::LivenessRules liveness;
  // The interval at which the client, during a wait, reports the awaited event through on_event.
  Duration report_every{10s};
  // A fill of a server or a copy of its state has no time limit, but is abandoned and repeated if
  // no byte is transferred for this long.
  Duration stall_after{60s};
  // A refusal (the address belongs to another job, attempt or definition) may come from a server of
  // an earlier run that is about to exit. A server that is short of memory may also refuse a
  // contribution. The client therefore treats a refusal as final only if it persists for this long.
  Duration refusal_patience{20s};
  // Borrowed. If null, the client uses TCP sockets with `credentials`.
  rpc::Connector* connector = nullptr;
  rpc::Credentials credentials;
};

struct StepResult {
  int64_t global_step = 0;
  // Asynchronous: the number of updates by other tasks that were applied between this task's read
  // of the values and the application of its gradient.
  int64_t staleness = 0;
  // The gradient was not used. Synchronous: it was too late for its step, or the servers were
  // rolled back. Asynchronous: it exceeded max_staleness.
  bool dropped = false;
  // Synchronous: the step needs another batch from this task; `values` are unchanged.
  bool again = false;
  // Since the previous result, the servers were rolled back to a checkpoint; the gradient was not
  // used. Asynchronous: ps 0 was filled with a state that lacks batches of this task; ps 0 has not
  // used the gradient, but other servers may have.
  bool rolled_back = false;
  // This task's position in its data: how many of its batches the servers' state counts as drawn.
  // If `drawn` is less than the value passed to BeginStep, the batches after this position must be
  // drawn again. 0 if no position was ever passed to BeginStep.
  int64_t drawn = 0;
};

// Only one thread at a time may use a client, but any thread may call MarkReady and Peers.
class ParameterClient {
 public:
  // Returns InvalidArgument for invalid options. Does not connect yet.
  static StatusOr<std::unique_ptr<ParameterClient>> Create(ClientOptions options);
  virtual ~ParameterClient() = default;

  // Connects to every server, waits until all have a state (the chief fills empty servers), joins,
  // and reads all variables into `values`, dense and in the order of TrainingState::variables. The
  // span of a table (Definition::tables) must be empty, here and in BeginStep.
  // Returns InvalidArgument if a size does not match, FailedPrecondition if a server refuses this
  // task (another job, attempt or definition), and DeadlineExceeded if `patience` runs out; the
  // message then names the servers that did not answer.
  virtual StatusOr<StepResult> WaitReady(std::span<const std::span<std::byte>> values) = 0;

  // Reads rows of tables, between two steps. indices[i] lists the rows of variable i: their
  // indices, distinct and ascending, followed by -1 for each unused row of rows[i]. The list is
  // empty if no row is needed. rows[i] has room for one row per entry of indices[i].
  //
  // In synchronous mode, the rows belong to the same step as this task's values, unless that step
  // no longer accepts contributions. Returns false if the servers were rolled back. The next step
  // then sends no gradients, but reads the values and returns StepResult::rolled_back. Recovers
  // from losses like EndStep, with the same errors. Returns InvalidArgument if an index does not
  // identify a row, or if rows[i] has the wrong size.
  virtual StatusOr<bool> PullRows(std::span<const std::span<const int64_t>> indices,
                                  std::span<const std::span<std::byte>> rows) = 0;

  // Begins the exchange of one step. gradients[i] must have the size of variable i, or be empty if
  // there is no update for it. From MarkReady(i) until EndStep returns, the caller must not change
  // gradients[i], and the client may overwrite values[i] with the new value at any time (after a
  // rollback, from BeginStep on). The outer spans are copied. `drawn` is the number of batches that
  // this task has drawn, including the batch of these gradients, or 0 if the task does not count
  // batches. With max_staleness, call this function only once the gradients have been computed,
  // because it decides whether to send them. In this case, it may wait like EndStep, with the same
  // errors.
  //
  // If the gradient of variable i arrives as rows (Definition::row_gradients), gradients[i]
  // contains rows, and indices[i] contains their indices in the variable, distinct and ascending,
  // followed by -1 for each unused row of gradients[i]. Like gradients[i], the indices are read
  // until EndStep returns and must not change. They may be empty for other variables, and omitted
  // if no gradient arrives as rows.
  virtual Status BeginStep(std::span<const std::span<const std::byte>> gradients,
                           std::span<const std::span<std::byte>> values, int64_t drawn,
                           std::span<const std::span<const int64_t>> indices = {}) = 0;
  virtual void MarkReady(int variable) = 0;
  // Marks the remaining gradients as ready, and waits until every server has answered.
  virtual StatusOr<StepResult> EndStep() = 0;

  // Performs a whole step: BeginStep, MarkReady for all variables, EndStep.
  StatusOr<StepResult> Exchange(std::span<const std::span<const std::byte>> gradients,
                                std::span<const std::span<std::byte>> values, int64_t drawn = 0);

  // Returns all variables, slots, the step and the ledger. In synchronous mode, all belong to the
  // same step. In asynchronous mode, each shard is copied at one moment, together with its slots
  // and ledger, but different shards may be copied at different moments. Call only between steps or
  // in ClientOptions::on_late_step. Recovers from lost servers as EndStep does. If the servers are
  // rolled back during the call, the next EndStep reports the rollback.
  //
  // Tables (Definition::tables) are streamed: until the snapshot is destroyed, the servers keep the
  // tables as of the copy, and any thread may read them while training continues. Reading returns
  // Unavailable if a server or the connection to it was lost during the read, or if this client was
  // destroyed, and NotFound if the server was lost earlier.
  //
  // Servers that were asked to stop (PeerEvent::Kind::kServerEnding) exit after the copy or, if
  // there are tables, once the snapshot is destroyed. No step is applied until their successors are
  // up, so the copy contains the last state.
  virtual StatusOr<state::Snapshot> TakeSnapshot() = 0;
  // Sets the learning rate of later updates. Only the chief may call it, between steps. The servers
  // receive the rate ahead of this task's next contribution. In synchronous mode, they use it from
  // the same step on, which is the next one unless the step can do without this task's
  // contribution. A rollback also resets the rate. In asynchronous mode, the rate applies on every
  // server to contributions that arrive after it, also on servers that are filled again later.
  virtual void SetLearningRate(const state::LearningRate& rate) = 0;
  // Returns the rate that the chief has set, as far as this task knows; nullopt for the
  // optimizer's.
  virtual std::optional<state::LearningRate> learning_rate() const = 0;
  // Replaces the state of all servers. Only the chief may call it, between steps.
  virtual Status Restore(const state::Snapshot& snapshot) = 0;
  // Announces that this task computes no further gradients because its data or its work is
  // finished.
  virtual Status Leave() = 0;
  // Like Leave, but for a task that was asked to stop before its work is done. Also informs the
  // chief. Waits up to 2 s for each server's answer.
  virtual Status Withdraw() = 0;
  // Makes every server process exit. Retries unreachable servers, which may be restarting, for
  // 20 s, then skips them.
  virtual Status Finish() = 0;
  // Like Finish, but tells every server that the run has failed (state::RunFailure). The servers
  // notify the other tasks, whose calls then return the same error, and exit once the chief has
  // called this function. Does nothing in a worker that has already learned of a failure.
  virtual Status Fail(const Status& failure) = 0;

  // Returns the servers, as this task sees them, and the other training tasks, as last reported by
  // ps 0. After a restart of ps 0, the list contains a task with unknown health until the task is
  // connected again, but at most for the duration of a lease.
  virtual std::vector<state::PeerState> Peers() = 0;
};

}  // namespace tfjob::ps
