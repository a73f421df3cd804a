// Decides whom a task follows. The first task (the chief, or worker 0 if there is no chief) usually
// leads. If a group may shrink, it goes on without that task, and another one leads:
//
// - A task that has no leader asks the first kMostLeaders tasks in order, and follows the first one
//   that accepts it. If none does, and it remembers a generation, it leads itself.
// - A task that leads accepts tasks behind it. It accepts tasks before it only while it does not wait
//   for others to join, or if they will not lead it: the first task follows it already, or the task
//   before it leads but does not accept it, because another process of its task is connected.
// - A task that leads, but waits for others to join, also asks the other tasks, and follows the
//   first one that accepts it. Of two tasks that lead, the later one therefore follows the other.
//
// Whether a generation may form does not depend on who leads (quorum.h), so these rules only need to
// bring the tasks together.
//
// Pure functions.
#pragma once

#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/membership/member.h"

namespace tfjob::collectives {

// Only tasks before this one may lead, so that a search ends soon.
inline constexpr int kMostLeaders = 16;
// How long a task that lets the first task lead does not lead itself.
inline constexpr Duration kHandBack{3s};

// What a task of a group knows about itself.
struct TaskView {
  int task = 0;          // its index among the tasks that train
  bool shrinks = false;  // the group may go on without some tasks
  bool leads = false;
  // The task that did not accept this process because another one of its task is connected; -1:
  // none.
  int occupied = -1;
  bool first_follows = false;  // it leads, and the first task follows it
  bool handed_back = false;    // it let the first task lead less than kHandBack ago
  const GroupMember* member = nullptr;
};

// Returns the tasks to ask, in this order.
std::vector<int> TasksToAsk(const TaskView& self, int tasks);
// Returns whether the task should look for a task that leads.
bool Searches(const TaskView& self);
// Returns whether a task that has found no other task that leads should begin to lead.
bool MayLead(const TaskView& self);
// Returns OK if this task accepts `caller` as a member; otherwise, returns FailedPrecondition or
// Unavailable. `name` is this task's name.
Status MayFollow(const TaskView& self, const std::string& name, int caller);

}  // namespace tfjob::collectives
