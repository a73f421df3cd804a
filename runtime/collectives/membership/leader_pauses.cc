// Decides which tasks a Leader leaves out for some time if the members of a generation cannot
// connect to each other.
#include <algorithm>
#include <utility>

#include "runtime/collectives/membership/leader.h"

namespace tfjob::collectives {

// If the generation continues an earlier one, the members that also belonged to that one were
// connected to each other. The likely culprits are therefore the new members that are not connected
// to all other members. The group continues without these new members for the length of a pause.
void Leader::GiveUpConnecting(Duration now) {
  std::vector<size_t> culprits;
  if (continues_) {
    for (const size_t index : ranks_) {
      const Seat& seat = seats_[index];
      if (seat.returns && !seat.ready) culprits.push_back(index);
    }
  } else if (rules_.elastic()) {
    culprits = Culprits();
  }
  for (const size_t index : culprits) {
    if (index == self_) {
      steps_aside_ = true;
      continue;
    }
    Seat& seat = seats_[index];
    seat.pause = rules_.NextPause(seat.pause);
    seat.paused_until = now + seat.pause;
  }
  Withdraw(StrCat("the members did not connect with each other within ",
                  FormatDuration(rules_.connect_patience), "; missing: ", awaited_.text));
}

// Leaves out the member with the most failed connections, until the remaining members have reported
// no failed connection with each other. If no member has reported any, leaves out the members that
// are not ready. At least LeaderRules::least_tasks members remain, and the leader is one of them.
std::vector<size_t> Leader::Culprits() const {
  std::set<std::pair<int, int>> failed;
  for (const size_t index : ranks_) {
    for (const int rank : seats_[index].unreachable) {
      failed.insert(std::minmax(seats_[index].rank, rank));
    }
  }
  const bool unknown = failed.empty();
  const auto is_candidate = [&](size_t index) {
    const Seat& seat = seats_[index];
    return index != self_ && seat.returns && !seat.ready;
  };
  const auto failures_of = [&](size_t index) {
    return std::ranges::count_if(failed, [rank = seats_[index].rank](const auto& pair) {
      return pair.first == rank || pair.second == rank;
    });
  };
  std::vector<size_t> left = ranks_, culprits;
  while (left.size() > static_cast<size_t>(rules_.least_tasks)) {
    const auto worst = std::ranges::max_element(left, {}, [&](size_t index) {
      return is_candidate(index) ? std::pair(failures_of(index), index)
                                 : std::pair(int64_t{-1}, index);
    });
    if (!is_candidate(*worst) || (!unknown && failures_of(*worst) == 0)) break;
    std::erase_if(failed, [rank = seats_[*worst].rank](const auto& pair) {
      return pair.first == rank || pair.second == rank;
    });
    culprits.push_back(*worst);
    left.erase(worst);
  }
  return culprits;
}

}  // namespace tfjob::collectives
