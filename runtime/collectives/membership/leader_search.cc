#include "runtime/collectives/membership/leader_search.h"

#include <algorithm>

namespace tfjob::collectives {
namespace {

bool WaitsForOthers(const TaskView& self) {
  return self.member->phase() == GroupMember::Phase::kJoining;
}

}  // namespace

std::vector<int> TasksToAsk(const TaskView& self, int tasks) {
  if (self.leads && !WaitsForOthers(self)) return {0};
  std::vector<int> all;
  const int most = self.shrinks ? std::min(tasks, kMostLeaders) : 1;
  for (int task = 0; task < most; ++task) {
    if (task != self.task) all.push_back(task);
  }
  return all;
}

bool Searches(const TaskView& self) {
  if (self.rests && self.task == 0) return false;
  if (!self.leads || (self.shrinks && WaitsForOthers(self))) return true;
  return self.call_due && self.task != 0 && !self.first_follows;
}

bool MayLead(const TaskView& self) {
  if (self.leads || self.rests || self.task >= kMostLeaders) return false;
  if (self.task == 0) return true;
  return self.shrinks && WaitsForOthers(self) && !self.member->past().empty();
}

Status MayFollow(const TaskView& self, const std::string& name, int caller) {
  if (!self.leads) return FailedPrecondition("refused: ", name, " does not lead the group");
  if (!self.shrinks) return OkStatus();
  if (!self.member->has_joined()) {
    return Unavailable("refused for now: ", name, " has not joined the group yet");
  }
  if (WaitsForOthers(self) && caller < self.task && caller != self.occupied &&
      !self.first_follows) {
    return Unavailable("refused for now: ", name, " leads only until a task before it does");
  }
  return OkStatus();
}

}  // namespace tfjob::collectives
