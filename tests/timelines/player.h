// Plays the steps of a timeline on a World.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "tests/timelines/timeline.h"
#include "tests/timelines/world.h"

namespace tfjob::timelines {

class Player {
 public:
  Player();

  // Stops at the first step that fails. The error names the step, and contains the expected and the
  // actual values.
  Status Play(const std::vector<Step>& steps);

  // Makes Play() kill the operator at its `call`th call, before the server executes the call or, if
  // `carried_out` is true, afterwards. Play() starts the operator again after the step with this
  // call.
  void KillOperatorAt(int call, bool carried_out);
  // Returns the number of calls that the operator has made.
  int CountCalls() { return static_cast<int>(world_.operator_client().Calls().size()); }
  // Returns the `call`th call (counted from 1) that the operator has made after its first start, as
  // "VERB KIND NAME".
  std::string CallName(int call);
  // Returns the job's pods, services, conditions, counts and attempt as text.
  StatusOr<std::string> Summary();
  // Returns the number of events on the server, by reason and message.
  StatusOr<std::map<std::string, int>> Events();

 private:
  Status Run(const Step& step);
  Status Apply(const Step& step);
  Status Patch(const Step& step);
  Status Create(const Step& step);
  Status Delete(const Step& step);
  Status Pod(const Step& step);
  Status AllPods(const Step& step);
  Status Node(const Step& step);
  Status PodGroup(const Step& step);
  Status PatchPodGroup(const Step& step);
  Status PatchNetworkPolicy(const Step& step);
  Status Native(const Step& step);
  Status Operator(const Step& step);
  Status Keys(const Step& step);
  Status AddFault(const Step& step);
  Status AddRace(const Step& step);
  Status StepClock(const Step& step);
  Status Restart(const Step& step);
  Status Mark(const Step& step);

  // Checks an `expect` step. Defined in expectations.cc.
  Status Expect(const Step& step);
  Status ExpectConditions(const Step& step);
  Status ExpectCondition(const Step& step);
  Status ExpectPods(const Step& step);
  Status ExpectServices(const Step& step);
  Status ExpectCounts(const Step& step);
  Status ExpectLabel(const Step& step);
  Status ExpectEvent(const Step& step);
  Status ExpectCalls(const Step& step);
  Status ExpectNoCalls(const Step& step);
  Status ExpectTime(const Step& step);
  Status ExpectStatus(const Step& step);
  Status ExpectKey(const Step& step);
  Status ExpectJson(const Step& step);
  Status ExpectTfConfig(const Step& step);
  Status ExpectPodGroup(const Step& step);
  Status ExpectNetworkPolicy(const Step& step);
  Status ExpectJobGone(const Step& step);
  StatusOr<api::TFJob> Job();
  // These functions return sorted lists. Pods lists pods with their phases, such as
  // "worker-0=Running*" (* if terminating). Services lists the names of services, such as
  // "worker-0".
  StatusOr<std::vector<std::string>> Pods();
  StatusOr<std::vector<std::string>> Services();
  // Returns the operator's calls since the last `mark` step, as "VERB KIND NAME".
  std::vector<std::string> Calls();

  using Action = Status (Player::*)(const Step&);
  static const std::map<std::string, Action>& Actions();
  static const std::map<std::string, Action>& Expectations();

  World world_;
  size_t mark_ = 0;
  int starts_ = 0;   // number of calls before the first step
  int dies_at_ = 0;  // number of the call at which to kill the operator; 0: never
  bool dies_after_ = false;
};

// Returns the kind of the pod groups of a gang scheduler. `scheduler` is "volcano",
// "scheduler-plugins" or "native".
StatusOr<objects::Kind> PodGroupKindOf(const std::string& scheduler);

// Returns the name with "job-", such as "job-worker-0" for "worker-0". Returns names that do not
// start with a replica type unchanged.
std::string FullName(const std::string& name);

}  // namespace tfjob::timelines
