// Decides which task each task follows. The first task (the chief, or worker 0 if there is no
// chief) usually leads. If a group may shrink, it can continue without that task, and another task
// leads:
//
// - A task that has no leader asks the first kMostLeaders tasks in order, and follows the first one
//   that accepts it. If no task accepts it, and it remembers a generation, it leads itself.
// - A task that leads accepts later tasks. It accepts an earlier task only if it is not waiting for
//   others to join, or if the earlier task will not lead it. The latter is the case if the first
//   task already follows it, or if the earlier task leads but does not accept it because another
//   process of its task is connected there.
// - A task that leads, but waits for others to join, also asks the other tasks, and follows the
//   first one that accepts it. If two tasks lead, the later one therefore follows the other.
// - In an elastic group, a leader other than the first task also calls the first task every
//   kCallFirst, because the first task may have been restarted without knowing the address of any
//   other task. The group's step is then repeated.
//
// These rules only bring the tasks together. Regardless of which task leads, the quorum determines
// whether a generation may form (quorum.h).
//
// Pure functions.
#pragma once

#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/membership/member.h"

namespace tfjob::collectives {

// Only the first kMostLeaders tasks may lead, so that a search does not take long.
inline constexpr int kMostLeaders = 16;
// How long a task must not lead after it has let the first task lead.
inline constexpr Duration kHandBack{3s};
// The interval at which a leader of an elastic group calls the first task.
inline constexpr Duration kCallFirst{3s};

// How long a task waits for the answer of a task that it asks. The limit is short, because an
// attempt cannot be interrupted.
inline constexpr Duration kAskAttempt{1s};
// How long the first task of an elastic group may have to wait until a member of an earlier group
// has called it: the member first notices the loss of the first task's predecessor. It may then
// have just started to ask other tasks, none of which answer. Every later round starts with the
// first task.
inline Duration CallPatience(Duration lease) {
  return lease + kMostLeaders * kAskAttempt + kCallFirst;
}

// The facts that a task of the group knows about itself.
struct TaskView {
  int task = 0;          // its index among the tasks that train
  bool shrinks = false;  // the group may continue without some tasks
  bool leads = false;
  // The task that did not accept this process because another process of this task is connected to
  // it; -1: none.
  int occupied = -1;
  bool first_follows = false;  // it leads, and the first task follows it
  // It currently does not lead, because it has let the first task lead, or because it is the first
  // task and the others could not connect to it. In the second case, it does not search for a
  // leader either.
  bool rests = false;
  bool call_due = false;  // the group is elastic, and kCallFirst has passed since the last call
  const GroupMember* member = nullptr;
};

// Returns the tasks that this task should ask to lead it, in order.
std::vector<int> TasksToAsk(const TaskView& self, int tasks);
// Returns whether the task should search for a leader.
bool Searches(const TaskView& self);
// Returns whether a task that has found no leader should start to lead.
bool MayLead(const TaskView& self);
// Returns OK if this task accepts `caller` as a member; otherwise, returns FailedPrecondition or
// Unavailable. `name` is this task's name.
Status MayFollow(const TaskView& self, const std::string& name, int caller);

}  // namespace tfjob::collectives
