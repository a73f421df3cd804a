// Keeps the list of the tasks that are connected to ps 0, as last reported by ps 0. Private to this
// package.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/scheduler.h"
#include "runtime/state/peer.h"

namespace tfjob::ps {

// A value type.
class Members {
 public:
  // Replaces the list with a new one from ps 0. ps 0 lists every task that has ever been connected,
  // even after the connection was lost, so a task is missing only if ps 0 was restarted and the
  // task has not reconnected. Such a task stays in the list for up to `patience`, with unknown
  // health, unless its connection had already been lost before the restart.
  void Take(std::vector<state::PeerState> list, SteadyTime now, Duration patience);
  const std::vector<state::PeerState>& list() const { return list_; }

 private:
  std::vector<state::PeerState> list_;
  std::map<std::string, SteadyTime> missing_since_;  // by task
};

}  // namespace tfjob::ps
