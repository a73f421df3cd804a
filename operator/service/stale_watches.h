// Decides what an operator does about watches that deliver nothing: continue, report it, or leave
// the lease to another operator. Pure: whether the server serves a kind is asked through a
// function.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/kube/client/watch_health.h"
#include "operator/objects/kind.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::service {

// A leader that sees nothing for this long exits, so that another operator may try.
// controller-runtime waits for its caches just as long.
inline constexpr Duration kStaleAfter = 2min;

// Returns OK if the server serves the kind, NotFound if it does not, or the error of asking.
using CheckServed = std::function<Status(objects::Kind)>;

// Removes the troubles of watches that the control loop can work without. One job's annotation must
// not end the operator for all jobs, so only the operator's own gang scheduler counts.
std::vector<kube::WatchTrouble> RequiredWatches(std::vector<kube::WatchTrouble> troubles,
                                                policy::GangScheduler gang);

enum class StaleAction { kContinue, kReport, kLeave };

struct StaleWatches {
  StaleAction action = StaleAction::kContinue;
  std::string because;  // the reason why the watch delivers nothing; "" for kContinue
  std::string watch;    // "Pod team-a/*"; "" if no watch is in trouble
  Duration lasting{0};  // of the watch
  bool of_all = false;  // other operators would have the same trouble
  std::string leaving;  // the reason to leave, for kLeave

  bool operator==(const StaleWatches&) const = default;
};

// While the first lists are missing; `missing` names them. `leads`: this operator has the lease.
// Returns kReport or kLeave.
StaleWatches JudgeMissingLists(const std::vector<kube::WatchTrouble>& troubles,
                               const std::string& missing, bool leads, const CheckServed& served);

// Once all lists are complete: judges the watches that are stale.
StaleWatches JudgeWatches(std::vector<kube::WatchTrouble> troubles, bool leads,
                          const CheckServed& served);

}  // namespace tfjob::service
