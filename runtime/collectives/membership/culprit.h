// Finds the rank that blocks an operation, from the ranks' reports of which rank each of them waits
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::collectives {

// Describes which rank an operation is waiting for.
struct RankWait {
  int64_t operation = 0;
  std::string name;  // the operation's name
  int on = -1;       // a rank
  Duration waited{0};
};

struct Culprit {
  int rank = -1;
  // The operation in which the ranks wait; if they wait in different operations, the earliest.
  int64_t operation = 0;
  std::string name;
  Duration waited{0};        // the longest wait
  std::vector<int> waiters;  // the ranks that wait for the culprit, directly or indirectly
};

// `waits` has one entry per rank, which is nullopt if the rank does not wait, or has only just
// started to wait. Follows each wait to a rank that does not wait. If ranks wait for each other in
// a cycle, the culprit is the rank with the earliest operation, because the others are ahead of it.
// Returns the rank that the most ranks wait for (the lowest such rank if there are several), or
// nullopt if no rank waits.
std::optional<Culprit> FindCulprit(const std::vector<std::optional<RankWait>>& waits);

}  // namespace tfjob::collectives
