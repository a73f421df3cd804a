// Implements ps 0's part of the synchronous protocol. The coordinator owns the step: it commits the
// first contributions to be staged on all servers, grants tokens for further batches, and voids the
// state once the servers no longer hold the same one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// A token. Ends the worker's exchange `sequence` and asks the worker for another
// contribution to the same step.
struct Again {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;
  int64_t step = 0;
  bool operator==(const Again&) const = default;
};

struct HoldResult {
  Worker worker;
  // False if the servers do not share a state, if another worker has the hold, or if the hold ended
  // before it could be granted.
  bool granted = false;
};

struct CoordinatorActions {
  std::vector<std::pair<int, ToParticipant>> messages;  // by receiving server
  std::vector<Again> again;
  std::vector<HoldResult> holds;
};

// Not thread-safe. The caller passes in every event and the time.
class Coordinator {
 public:
  explicit Coordinator(int servers) : participants_(static_cast<size_t>(servers)) {}
  int servers() const { return static_cast<int>(participants_.size()); }

  // ps 0 now has a state with a new epoch. The job continues once all servers report that epoch.
  CoordinatorActions Fill(int64_t epoch, int64_t step, int replicas_to_aggregate);
  // ps 0 no longer has a valid state. Aborts the epoch on every server and ends any hold.
  CoordinatorActions Void();

  CoordinatorActions OnMessage(int server, const ToCoordinator& message);
  // Join: the worker takes part from now on. Leave: it no longer does, because its data
  // ended, its connection closed or its lease expired. Leave has no effect unless
  // `incarnation` is the current one.
  CoordinatorActions Join(const Worker& worker, int64_t incarnation);
  CoordinatorActions Leave(const Worker& worker, int64_t incarnation);

  // Suspends commits until `worker` releases the hold or leaves, 60 s pass without a renewal, or
  // the state becomes void. The hold is granted once all servers have applied the same steps.
  CoordinatorActions Hold(Duration now, const Worker& worker);
  // Extends a granted hold. Does nothing if the hold has ended; a copy made since then
  // may mix several steps.
  void Renew(Duration now, const Worker& worker);
  CoordinatorActions Release(const Worker& worker);
  // Called periodically. Repeats the last commit to servers that have not applied it,
  // and ends an expired hold.
  CoordinatorActions Tick(Duration now);

  // Returns whether `worker` was granted a hold that has not ended.
  bool Holds(const Worker& worker) const { return holder_ == worker && hold_granted_; }

  bool active() const;
  int64_t step() const { return step_; }
  // Returns the members that are still computing for the current step while others wait for them.
  std::vector<Worker> Awaited() const;

 private:
  struct Server {
    int64_t incarnation = 0;
    int64_t epoch = 0;
    int64_t step = 0;  // the server has applied all commits before it
  };
  struct Member {
    int64_t incarnation = 0;
    std::optional<uint64_t> waiting;  // its last contribution, once staged on all servers
    uint64_t order = 0;               // position in the order in which members began to wait
    uint64_t granted = 0;             // the contribution that was answered with a token
  };

  void OnHello(int server, const Hello& hello, CoordinatorActions& actions);
  void OnStaged(int server, const StagedReport& report, CoordinatorActions& actions);
  void Break(CoordinatorActions& actions);
  // Commits the step and grants tokens and holds that are due.
  void Proceed(CoordinatorActions& actions);
  void CommitStep(CoordinatorActions& actions);
  void GrantTokens(CoordinatorActions& actions);
  void EndHold(CoordinatorActions& actions);
  bool AllApplied() const;

  std::vector<Server> participants_;
  int64_t epoch_ = 0;  // 0: void
  int64_t step_ = 0;
  size_t aggregate_ = 1;
  // The contributions to this step, and on which servers each is staged.
  std::map<Name, std::vector<bool>> staged_;
  std::vector<Name> complete_;  // staged on all servers, oldest first
  std::optional<Commit> last_commit_;
  Duration repeated_{0};

  std::map<Worker, Member> members_;
  uint64_t order_ = 0;

  std::optional<Worker> holder_;
  bool hold_granted_ = false;
  Duration hold_until_{0};
};

}  // namespace tfjob::ps::protocol
