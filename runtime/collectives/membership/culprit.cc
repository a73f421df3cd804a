#include "runtime/collectives/membership/culprit.h"

#include <algorithm>

namespace tfjob::collectives {
namespace {

using Waits = std::vector<std::optional<RankWait>>;

bool DoesWait(const Waits& waits, int rank) {
  const auto& wait = waits[static_cast<size_t>(rank)];
  return wait && wait->on >= 0 && wait->on < static_cast<int>(waits.size()) && wait->on != rank;
}

// Returns the rank with the earliest operation in the cycle through `start`; if there are several,
// the lowest of them.
int EarliestOfCircle(const Waits& waits, int start) {
  int earliest = start;
  for (int rank = waits[static_cast<size_t>(start)]->on; rank != start;
       rank = waits[static_cast<size_t>(rank)]->on) {
    const auto order = [&](int r) {
      return std::make_pair(waits[static_cast<size_t>(r)]->operation, r);
    };
    if (order(rank) < order(earliest)) earliest = rank;
  }
  return earliest;
}

// Returns the rank that `rank` ultimately waits for.
int RootOf(const Waits& waits, int rank) {
  // After one step per rank, the walk has reached a rank that does not wait, or is in a cycle.
  for (size_t step = 0; step < waits.size(); ++step) {
    if (!DoesWait(waits, rank)) return rank;
    rank = waits[static_cast<size_t>(rank)]->on;
  }
  return DoesWait(waits, rank) ? EarliestOfCircle(waits, rank) : rank;
}

}  // namespace

std::optional<Culprit> FindCulprit(const Waits& waits) {
  const int ranks = static_cast<int>(waits.size());
  std::vector<Culprit> found(waits.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (!DoesWait(waits, rank)) continue;
    const int root = RootOf(waits, rank);
    if (root == rank) continue;
    const RankWait& wait = *waits[static_cast<size_t>(rank)];
    Culprit& culprit = found[static_cast<size_t>(root)];
    if (culprit.waiters.empty() || wait.operation < culprit.operation) {
      culprit.operation = wait.operation;
      culprit.name = wait.name;
    }
    culprit.rank = root;
    culprit.waited = std::max(culprit.waited, wait.waited);
    culprit.waiters.push_back(rank);
  }
  const auto most = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.waiters.size() < b.waiters.size();
  });
  if (most == found.end() || most->waiters.empty()) return std::nullopt;
  return *most;
}

}  // namespace tfjob::collectives
