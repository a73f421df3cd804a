// ps 0's part in the synchronous protocol: it owns the step. It commits the first contributions
// that are staged everywhere, hands out tokens, and stops the job when the servers no longer hold
// one state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// The worker computes another contribution for the same step; its exchange `sequence` ends so.
struct Again {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;
  int64_t step = 0;
  bool operator==(const Again&) const = default;
};

struct HoldResult {
  Worker worker;
  bool granted = false;  // false: the state became void meanwhile
};

struct CoordinatorActions {
  std::vector<std::pair<int, ToParticipant>> messages;  // by server
  std::vector<Again> again;
  std::vector<HoldResult> holds;
};

// Not thread-safe. The caller hands in everything that happens, with the time.
class Coordinator {
 public:
  explicit Coordinator(int servers) : participants_(static_cast<size_t>(servers)) {}
  int servers() const { return static_cast<int>(participants_.size()); }

  // ps 0 holds a state under a new epoch; the job goes on when all servers say the same.
  CoordinatorActions Fill(int64_t epoch, int64_t step, int replicas_to_aggregate);
  // ps 0's state is void, and with it everybody's.
  CoordinatorActions Void();

  CoordinatorActions OnMessage(int server, const ToCoordinator& message);
  // A worker takes part (again) or no longer: end of data, a closed connection, the end of its
  // lease. A departure of another incarnation than the present one is ignored.
  CoordinatorActions Join(const Worker& worker, int64_t incarnation);
  CoordinatorActions Leave(const Worker& worker, int64_t incarnation);

  // Commits nothing until released: by the same worker, by its departure, or after 60 s without a
  // renewal. Granted when all servers have applied the same steps.
  CoordinatorActions Hold(Duration now, const Worker& worker);
  // Nothing when the hold has ended: what is copied then may be of several steps.
  void Renew(Duration now, const Worker& worker);
  CoordinatorActions Release(const Worker& worker);
  // Now and then: repeats what got no answer, ends leases.
  CoordinatorActions Tick(Duration now);

  // The hold was granted and has not ended.
  bool Holds(const Worker& worker) const { return holder_ == worker && hold_granted_; }

  bool active() const;
  int64_t step() const { return step_; }
  // Members that still compute for the present step while others wait.
  std::vector<Worker> Awaited() const;

 private:
  struct Server {
    int64_t incarnation = 0;
    int64_t epoch = 0;
    int64_t step = 0;  // applied
  };
  struct Member {
    int64_t incarnation = 0;
    std::optional<uint64_t> waiting;  // its last contribution, staged everywhere
    uint64_t order = 0;               // since when it waits
    uint64_t granted = 0;             // the contribution that ended with `again`
  };

  void OnHello(int server, const Hello& hello, CoordinatorActions& actions);
  void OnStaged(int server, const StagedReport& report, CoordinatorActions& actions);
  void Break(CoordinatorActions& actions);
  // Commits, grants tokens and holds, as far as they are due.
  void Proceed(CoordinatorActions& actions);
  void CommitStep(CoordinatorActions& actions);
  void GrantTokens(CoordinatorActions& actions);
  void EndHold(CoordinatorActions& actions);
  bool AllApplied() const;

  std::vector<Server> participants_;
  int64_t epoch_ = 0;  // 0: void
  int64_t step_ = 0;
  size_t aggregate_ = 1;
  std::map<Name, std::vector<bool>> staged_;  // for this step → where
  std::vector<Name> complete_;                // staged everywhere, in that order
  std::optional<Commit> last_commit_;
  Duration repeated_{0};

  std::map<Worker, Member> members_;
  uint64_t order_ = 0;

  std::optional<Worker> holder_;
  bool hold_granted_ = false;
  Duration hold_until_{0};
};

}  // namespace tfjob::ps::protocol
