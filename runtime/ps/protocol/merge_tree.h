// Decides which pairs of contributions to a step are summed as soon as both are certain to be used.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps::protocol {

// Pairs neighbours: workers 0 and 1, 2 and 3, and so on; then the pairs 0–1 and 2–3, and so on.
// The sums depend only on the set of contributions, not on the order in which they arrive, so two
// runs of a job add the same numbers in the same order. A value type.
class MergeTree {
 public:
  // Adds a contribution. Returns the pairs that can now be summed, in order: the second of each
  // pair is summed into the first. If a worker has several contributions, only the first is paired.
  std::vector<std::pair<Name, Name>> Add(const Name& name);
  void Clear() { roots_.clear(); }

 private:
  struct Node {
    int level = 0;
    int64_t index = 0;
    auto operator<=>(const Node&) const = default;
  };
  std::map<Node, Name> roots_;  // the sum of the workers below a node is kept under this name
};

}  // namespace tfjob::ps::protocol
