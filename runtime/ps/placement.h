// Which server holds which rows of which variable: a pure function of the definition and the
// number of servers, so that every task computes the same.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ps/definition.h"

namespace tfjob::ps {

// Consecutive elements of one variable on one server. `offset` and `size` are bytes into the dense,
// row-major value; they fall on row borders, or on elements when a row alone exceeds the limit.
struct Shard {
  int variable = 0;
  int server = 0;
  int64_t offset = 0;
  int64_t size = 0;

  bool operator==(const Shard&) const = default;
};

// Ordered by variable, then offset; a shard's place in the list is its number on the wire. A shard
// covers every byte of every variable once. A variable without elements has one empty shard.
// Shards of one variable go to servers one after the other (kRoundRobin), or each where the fewest
// bytes lie, the largest first (kBalanced; ties: the lowest server, the earlier shard).
std::vector<Shard> Place(const Definition& definition, int servers);

}  // namespace tfjob::ps
