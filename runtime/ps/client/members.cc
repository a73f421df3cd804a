#include "runtime/ps/client/members.h"

#include <algorithm>
#include <utility>

namespace tfjob::ps {

void Members::Take(std::vector<state::PeerState> list, SteadyTime now, Duration patience) {
  std::map<std::string, SteadyTime> missing_since;
  for (state::PeerState& before : list_) {
    const bool listed = std::ranges::find(list, before.task, &state::PeerState::task) != list.end();
    if (listed || before.health == state::PeerHealth::kLost) continue;
    const auto found = missing_since_.find(before.task);
    const SteadyTime since = found == missing_since_.end() ? now : found->second;
    if (now - since >= patience) continue;
    missing_since[before.task] = since;
    before.health = state::PeerHealth::kUnknown;
    list.push_back(std::move(before));
  }
  list_ = std::move(list);
  missing_since_ = std::move(missing_since);
}

}  // namespace tfjob::ps
