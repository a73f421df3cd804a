#include "runtime/collectives/membership/quorum.h"

#include <algorithm>

namespace tfjob::collectives {
namespace {

// A leader numbers its generations, so the number and the leader's process identify a generation.
bool IsSame(const PastGeneration& left, const PastGeneration& right) {
  return left.generation == right.generation && left.members.front() == right.members.front();
}

}  // namespace

void GenerationHistory::Begin(const FormOrder& order) {
  PastGeneration begun{.generation = order.generation};
  for (const Member& member : order.members) {
    begun.members.push_back({member.task, member.incarnation});
  }
  // A majority of the new generation is also a majority of an earlier generation with the same
  // members.
  std::erase_if(past_, [&](const PastGeneration& past) {
    return !past.shared && !past.resigned && past.members == begun.members;
  });
  past_.push_back(std::move(begun));
}

void GenerationHistory::Share(int64_t generation) {
  if (past_.empty() || past_.back().generation != generation) return;
  past_.erase(past_.begin(), past_.end() - 1);
  past_.back().shared = true;
}

void GenerationHistory::Resign() {
  for (PastGeneration& past : past_) past.resigned = true;
}

std::vector<const PastGeneration*> GenerationsToContinue(std::span<const Vote> votes) {
  const PastGeneration* last = nullptr;
  for (const Vote& vote : votes) {
    for (const PastGeneration& past : vote.past) {
      if (past.shared && (last == nullptr || past.generation > last->generation)) last = &past;
    }
  }
  if (last == nullptr) return {};
  std::vector<const PastGeneration*> all = {last};
  for (const Vote& vote : votes) {
    for (const PastGeneration& past : vote.past) {
      if (past.generation < last->generation) continue;
      const auto known = [&](const PastGeneration* other) { return IsSame(past, *other); };
      if (std::ranges::none_of(all, known)) all.push_back(&past);
    }
  }
  return all;
}

bool IsMajority(const PastGeneration& generation,
                const std::function<bool(const Participant&)>& is_present,
                const std::function<bool(const Participant&)>& has_resigned) {
  size_t all = 0, present = 0;
  bool first_is_present = false;
  for (const Participant& member : generation.members) {
    const bool here = is_present(member);
    if (!here && has_resigned(member)) continue;
    if (all == 0) first_is_present = here;
    ++all;
    present += here ? 1 : 0;
  }
  return 2 * present > all || (2 * present == all && first_is_present);
}

bool HaveMajority(std::span<const Vote> votes,
                  const std::function<bool(const Participant&, int64_t)>& has_resigned) {
  const std::vector<const PastGeneration*> all = GenerationsToContinue(votes);
  const auto carries = [&](const PastGeneration* generation) {
    const auto is_present = [&](const Participant& member) {
      const auto vote = std::ranges::find(votes, member, &Vote::process);
      if (vote == votes.end()) return false;
      return std::ranges::none_of(vote->past, [&](const PastGeneration& past) {
        return past.resigned && IsSame(past, *generation);
      });
    };
    return IsMajority(*generation, is_present, [&](const Participant& member) {
      return has_resigned(member, generation->generation);
    });
  };
  return !all.empty() && std::ranges::all_of(all, carries);
}

}  // namespace tfjob::collectives
