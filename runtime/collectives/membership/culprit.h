// Finds the rank that blocks an operation, from what every rank reports that it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::collectives {

// Tells for which rank an operation of a rank waits.
struct RankWait {
  int64_t operation = 0;
  std::string name;  // of the operation
  int on = -1;       // a rank
  Duration waited{0};
};

struct Culprit {
  int rank = -1;
  // The operation that the waiting ranks are in. If they are in several, the earliest.
  int64_t operation = 0;
  std::string name;
  Duration waited{0};        // the longest wait
  std::vector<int> waiters;  // the ranks that wait for the culprit, directly or indirectly
};

// `waits` has one entry per rank; nullopt: the rank does not wait, or not yet for long. Follows
// each wait to a rank that does not wait. If ranks wait in a circle, the one with the earliest
// operation counts, because the others are ahead of it. Returns the rank for which most others
// wait (among equals, the one with the lowest number), or nullopt if no rank waits.
std::optional<Culprit> FindCulprit(const std::vector<std::optional<RankWait>>& waits);

}  // namespace tfjob::collectives
