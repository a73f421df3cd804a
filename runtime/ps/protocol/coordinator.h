// Implements the part of ps 0 in the synchronous protocol. The coordinator owns the step: it
// commits the first contributions that are staged on all servers, grants tokens for further
// batches, and voids the state if the servers no longer hold the same one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// A token: ends the worker's exchange `sequence`; the worker computes another contribution for the
// same step.
struct Again {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;
  int64_t step = 0;
  bool operator==(const Again&) const = default;
};

struct HoldResult {
  Worker worker;
  bool granted = false;  // false: the state is void, another worker holds, or the hold ended
};

struct CoordinatorActions {
  std::vector<std::pair<int, ToParticipant>> messages;  // with the receiving server
  std::vector<Again> again;
  std::vector<HoldResult> holds;
};

// Not thread-safe. The caller passes in every event and the time.
class Coordinator {
 public:
  explicit Coordinator(int servers) : participants_(static_cast<size_t>(servers)) {}
  int servers() const { return static_cast<int>(participants_.size()); }

  // ps 0 holds a state under a new epoch. The job continues once all servers report that epoch.
  CoordinatorActions Fill(int64_t epoch, int64_t step, int replicas_to_aggregate);
  // The state of ps 0 is void, and so is that of every other server.
  CoordinatorActions Void();

  CoordinatorActions OnMessage(int server, const ToCoordinator& message);
  // A worker takes part (again), or no longer does: its data ended, its connection closed or its
  // lease expired. A departure of any but the present incarnation is ignored.
  CoordinatorActions Join(const Worker& worker, int64_t incarnation);
  CoordinatorActions Leave(const Worker& worker, int64_t incarnation);

  // Suspends commits until the same worker releases the hold or departs, or until 60 s pass without
  // a renewal. The hold is granted once all servers have applied the same steps.
  CoordinatorActions Hold(Duration now, const Worker& worker);
  // Extends the hold. Does nothing if it has ended: a copy may then mix several steps.
  void Renew(Duration now, const Worker& worker);
  CoordinatorActions Release(const Worker& worker);
  // Called periodically. Repeats unanswered messages and ends expired holds.
  CoordinatorActions Tick(Duration now);

  // Returns whether the hold was granted and has not ended.
  bool Holds(const Worker& worker) const { return holder_ == worker && hold_granted_; }

  bool active() const;
  int64_t step() const { return step_; }
  // Returns the members that still compute for the present step while others wait.
  std::vector<Worker> Awaited() const;

 private:
  struct Server {
    int64_t incarnation = 0;
    int64_t epoch = 0;
    int64_t step = 0;  // commits before it are applied
  };
  struct Member {
    int64_t incarnation = 0;
    std::optional<uint64_t> waiting;  // its last contribution, if staged on all servers
    uint64_t order = 0;               // position in the order in which members began to wait
    uint64_t granted = 0;             // the contribution that ended with `again`
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
  std::map<Name, std::vector<bool>> staged_;  // for this step: on which servers
  std::vector<Name> complete_;                // in the order in which they were staged everywhere
  std::optional<Commit> last_commit_;
  Duration repeated_{0};

  std::map<Worker, Member> members_;
  uint64_t order_ = 0;

  std::optional<Worker> holder_;
  bool hold_granted_ = false;
  Duration hold_until_{0};
};

}  // namespace tfjob::ps::protocol
