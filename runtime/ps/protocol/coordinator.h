// Implements ps 0's part of the synchronous protocol (see docs/internals.md). The coordinator owns
// the step. It commits the earliest contributions that every server has staged, that is, received
// and kept. It grants tokens that ask workers for more batches. If the servers no longer have the
// same state, it declares the state void. Clipping by norm adds a round to the commit, in which the
// coordinator sums the squares that the servers report.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/merge_tree.h"
#include "runtime/ps/protocol/messages.h"
#include "runtime/ps/protocol/step_lease.h"

namespace tfjob::ps::protocol {

// A token, which requests another contribution to the same step from a worker. The token is the
// answer to the worker's exchange `sequence`.
struct Again {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;
  int64_t step = 0;
  bool operator==(const Again&) const = default;
};

struct HoldResult {
  Worker worker;
  // False if the servers do not share a state, if another worker has the hold, or if the hold was
  // cancelled before it could be granted.
  bool granted = false;
};

// Reports that a connected worker has lost its token: the other workers no longer wait for its
// contribution.
struct Lapse {
  Worker worker;
  Duration waited{0};  // how long the other workers have waited
  bool operator==(const Lapse&) const = default;
};

struct CoordinatorActions {
  std::vector<std::pair<int, ToParticipant>> messages;  // the receiving server and the message
  std::vector<Again> again;
  std::vector<HoldResult> holds;
  std::vector<Lapse> lapses;
  std::vector<Worker> returned;  // workers that had lost their token and now contribute again
  // The first step no longer waits for these workers, because they did not join in time.
  std::vector<Worker> absent;
};

// Not thread-safe. The caller passes in every event and the time.
class Coordinator {
 public:
  explicit Coordinator(int servers, const LeaseRule& lease = {})
      : participants_(static_cast<size_t>(servers)), lease_(lease) {}
  int servers() const { return static_cast<int>(participants_.size()); }

  // Delays the first commit until all these workers are members, so that every run starts with the
  // same sets of contributions. Does not wait for a worker that has left because its data ended.
  // The wait ends at `until`. Call before the first Fill. Has no effect after the first commit was
  // possible, because tasks lost during training must not delay the other tasks.
  void Gather(std::vector<Worker> workers, Duration until);
  // Returns the workers that the first step is still waiting for.
  std::vector<Worker> Missing() const;

  // Called after ps 0 has been filled with a state of a new epoch. Commits start once all servers
  // have reported that epoch. With `merges`, requests that servers sum two contributions as soon as
  // both are certain to be in the commit, which frees memory before the last contribution arrives.
  // If `groups` is not 0, each commit is measured: each server reports `groups` sums of squares of
  // its part of the mean, and applies its part once it has the totals over all servers.
  CoordinatorActions Fill(int64_t epoch, int64_t step, int replicas_to_aggregate,
                          bool merges = false, size_t groups = 0);
  // Sets the learning rate of the steps that are committed from now on; nullopt for the one that
  // the servers were filled with. Every commit contains the rate, so all servers use it from the
  // same step on, whichever messages are lost.
  void SetLearningRate(std::optional<double> rate) { learning_rate_ = rate; }
  // Called when ps 0 no longer has a valid state. Aborts the epoch on every server and ends
  // any hold.
  CoordinatorActions Void();

  CoordinatorActions OnMessage(int server, const ToCoordinator& message);
  // Join makes the worker a member. From then on, a contribution by an earlier incarnation counts
  // only if all servers had staged it; otherwise, the servers free the contribution's bytes. Leave
  // ends the membership, because the worker's data ended (`for_good`), its connection closed or its
  // lease expired. Leave has no effect unless `incarnation` is the current one.
  CoordinatorActions Join(const Worker& worker, int64_t incarnation);
  CoordinatorActions Leave(const Worker& worker, int64_t incarnation, bool for_good = false);
  // Returns the highest StagedReport::drawn among the worker's contributions to the current step
  // whose batches count as drawn, or 0. The batches of contributions that will be committed count:
  // the earliest ones that every server keeps, up to the number that the step needs. With `backups`
  // (see Participant::Fill), the batches of later contributions, which will be dropped, also count.
  // Otherwise, the workers are expected to compute these batches again.
  int64_t DrawnBy(const Worker& worker, bool backups) const;

  // Suspends commits until `worker` releases the hold or leaves, 60 s pass without a renewal, or
  // the state becomes void. The hold is granted once all servers have applied the same steps.
  CoordinatorActions Hold(Duration now, const Worker& worker);
  // Extends a granted hold. Has no effect if the hold has already ended; a copy in progress may
  // then mix several steps.
  void Renew(Duration now, const Worker& worker);
  CoordinatorActions Release(const Worker& worker);
  // Called periodically. Resends the last commit to servers that have not applied it, and ends an
  // expired hold. Except during a hold, withdraws the token of a member that others have waited for
  // longer than the step's lease. Such a member counts as computing again as soon as it sends a
  // message.
  CoordinatorActions Tick(Duration now);

  // Returns whether `worker` was granted a hold that has not ended.
  bool Holds(const Worker& worker) const { return holder_ == worker && hold_granted_; }

  bool active() const;
  int64_t step() const { return step_; }
  // Returns the members that are still computing for the current step while other members wait for
  // them, and that have not lost their token.
  std::vector<Worker> Awaited() const;

 private:
  struct Server {
    int64_t incarnation = 0;
    int64_t epoch = 0;
    int64_t step = 0;             // all commits to earlier steps are applied
    std::vector<double> squares;  // as reported for the last commit; empty if not reported
  };
  struct Member {
    int64_t incarnation = 0;
    std::optional<uint64_t> waiting;  // sequence of its last contribution, once staged everywhere
    uint64_t order = 0;               // position in the order in which the members began to wait
    uint64_t granted = 0;             // the sequence that was answered with a token
    std::optional<Duration> awaited;  // when others began to wait for it; set by Tick
    bool lapsed = false;              // it lost its token and has not been heard from since
    bool computes() const { return !waiting && !lapsed; }
  };

  void OnHello(int server, const Hello& hello, CoordinatorActions& actions);
  void OnStaged(int server, const StagedReport& report, CoordinatorActions& actions);
  void OnComplete(const Name& name, CoordinatorActions& actions);
  void OnSquares(int server, const SquaresReport& report, CoordinatorActions& actions);
  void Break(CoordinatorActions& actions);
  // Commits the step if it is complete, and grants the tokens and the hold that are due.
  void Proceed(CoordinatorActions& actions);
  void CommitStep(CoordinatorActions& actions);
  void RepeatCommit(CoordinatorActions& actions) const;
  void GrantTokens(CoordinatorActions& actions);
  void ExpireTokens(Duration now, CoordinatorActions& actions);
  static void Return(const Worker& worker, Member& member, CoordinatorActions& actions);
  void EndHold(CoordinatorActions& actions);
  bool AllApplied() const;
  bool IsOlder(const Name& name) const;
  void DropOlder(const Worker& worker, CoordinatorActions& actions);

  std::vector<Server> participants_;
  int64_t epoch_ = 0;  // 0: void
  int64_t step_ = 0;
  size_t aggregate_ = 1;
  struct Contribution {
    std::vector<bool> where;  // whether each server has staged it
    int64_t drawn = 0;
  };
  std::map<Name, Contribution> staged_;  // contributions to the current step
  std::vector<Name> complete_;           // staged on all servers, oldest first
  bool merges_ = false;
  MergeTree tree_;
  std::optional<Commit> last_commit_;
  std::optional<Totals> totals_;  // the last commit's, once all servers have measured it
  size_t groups_ = 0;             // 0: commits are not measured
  std::optional<double> learning_rate_;
  Duration repeated_{0};

  std::map<Worker, Member> members_;
  uint64_t order_ = 0;
  StepLease lease_;
  std::map<Worker, int64_t> newest_;  // the newest incarnation that has joined

  bool gathered_ = false;
  std::vector<Worker> gathering_;
  Duration gather_until_{0};
  std::set<Worker> departed_;  // workers that have left for good

  std::optional<Worker> holder_;
  bool hold_granted_ = false;
  Duration hold_until_{0};
};

}  // namespace tfjob::ps::protocol
