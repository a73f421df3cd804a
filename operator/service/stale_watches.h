// Decides what an operator does about watches that do not deliver events: continue, report them, or
// give up the lease so that another operator can try. Pure: queries whether the server serves a
// kind only through a function argument.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/kube/client/watch_health.h"
#include "operator/objects/kind.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::service {

// If a watch of the leader has not worked for this long, the leader exits so that another operator
// can try, unless all other operators would have the same trouble. This is also the time for which
// controller-runtime waits for its caches.
inline constexpr Duration kStaleAfter = 2min;

// Returns OK if the server serves the kind, NotFound if it does not, and the error of the request
// if it fails.
using CheckServed = std::function<Status(objects::Kind)>;

// Returns the entries of `troubles` whose watches the control loop cannot do without. A gang
// scheduler's watches count only if the operator's flag selects that scheduler (`gang`). If only a
// job's annotation selects it, the operator must go on with the other jobs. The NetworkPolicy watch
// counts if `network_policies`, the operator's flag, lets any job have a policy.
std::vector<kube::WatchTrouble> RequiredWatches(std::vector<kube::WatchTrouble> troubles,
                                                policy::GangScheduler gang,
                                                policy::NetworkPolicies network_policies);

enum class StaleAction { kContinue, kReport, kLeave };

struct StaleWatches {
  StaleAction action = StaleAction::kContinue;
  std::string because;  // why nothing is delivered; "" for kContinue
  std::string watch;    // such as "Pod team-a/*"; "" if no watch is in trouble
  Duration lasting{0};  // how long the watch has been in trouble
  bool of_all = false;  // other operators would have the same trouble
  std::string leaving;  // for kLeave: the reason for leaving

  bool operator==(const StaleWatches&) const = default;
};

// Decides what to do while some of the first lists are missing; `missing` names these lists.
// `leads` is true if this operator holds the lease. The action is kReport or kLeave.
StaleWatches JudgeMissingLists(const std::vector<kube::WatchTrouble>& troubles,
                               const std::string& missing, bool leads, const CheckServed& served);

// Decides what to do once all lists are complete. Considers only watches that have been in trouble
// for at least kStaleAfter.
StaleWatches JudgeWatches(std::vector<kube::WatchTrouble> troubles, bool leads,
                          const CheckServed& served);

}  // namespace tfjob::service
