// Decides which server stores which rows of which variable. The placement is a pure function of the
// definition and the number of servers, so every task computes the same one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ps/definition.h"

namespace tfjob::ps {

// Consecutive elements of one variable, on one server. `offset` and `size` count bytes of
// the dense, row-major value. They are aligned to rows, or to elements if a single row
// exceeds Definition::max_shard_bytes.
//
// A variable whose constraint has norms over the first axis has one shard, however large, because
// the constraint needs the whole variable. A constraint with norms over other axes needs whole
// rows.
struct Shard {
  int variable = 0;
  int server = 0;
  int64_t offset = 0;
  int64_t size = 0;

  bool operator==(const Shard&) const = default;
};

// Returns how many shards a variable is split into. The variable's size must be within
// kMaxVariableBytes.
int64_t ShardCount(const state::Variable& variable, int64_t max_shard_bytes);

// Returns the shape of a shard's value: flat, unless the variable has a constraint with norms.
Shape ShapeOf(const state::Variable& variable, const Shard& shard);

// Returns all shards, ordered by variable, then offset. Requires a definition that Validate
// accepts. A shard's index in the list identifies the shard on the wire. The shards cover every
// byte of every variable exactly once; a variable without elements has one empty shard. kRoundRobin
// assigns the shards to the servers cyclically, by index. kBalanced assigns the shards from the
// largest to the smallest, each to the server with the fewest bytes so far; ties are broken in
// favour of the first shard in the list and the server with the lowest index.
std::vector<Shard> Place(const Definition& definition, int servers);

// Returns the lines of a snapshot's ledger that a server needs. Each line starts with a shard index
// (see Store::SetLedger). The server needs the lines of its own shards, and the lines with a
// negative index, which do not belong to a shard. An unreadable line is kept, so that the server
// rejects it.
std::string LedgerOf(std::string_view ledger, const std::vector<Shard>& shards, int server);

}  // namespace tfjob::ps
