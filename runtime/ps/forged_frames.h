// Lists messages of a peer that deliberately violates the protocol. For tests.
#pragma once

#include <limits>
#include <vector>

#include "runtime/ps/test_peer.h"

namespace tfjob::ps {

// Returns definitions whose sizes are impossible, overflow or exceed every limit.
inline std::vector<Definition> ImpossibleDefinitions() {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  Definition definition;
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kRmsprop);
  definition.state.optimizer.centered = true;
  definition.state.optimizer.momentum = 0.5;
  std::vector<Definition> definitions;
  const auto add = [&](std::vector<int64_t> dims, int64_t max_shard_bytes) {
    definition.state.variables = {{.name = "w", .shape = Shape(std::move(dims))}};
    definition.max_shard_bytes = max_shard_bytes;
    definitions.push_back(definition);
  };
  // With the variable's three slots, the states of these two definitions have 2^64 and 2^66 bytes.
  add({int64_t{1} << 60}, kNever);
  add({int64_t{1} << 62}, kNever);
  // The size of the variable wraps to 32 bytes, so a row seems to have 0 bytes. A server that
  // divides by the size of a row would crash.
  add({(int64_t{1} << 61) + 1, 8}, 1);
  // Billions of shards.
  add({int64_t{1} << 36}, 1);
  add({-1}, 1);
  return definitions;
}

// Returns contributions whose bytes do not match their shards. The first shard must have `floats`
// elements, at least four, and there must be at most seven shards.
inline std::vector<std::vector<Bytes>> ImpossibleContributions(size_t floats) {
  return {
      {{.bytes = Floats(floats + 1, 1)}},
      {{.offset = 8, .bytes = Floats(floats - 2, 1)}},
      {{.offset = ~uint64_t{0} - 8, .bytes = Floats(floats, 1)}},
      {{.index = 7, .bytes = Floats(floats, 1)}},
      {{.index = 0x80000000, .bytes = Floats(floats, 1)}},
      {{.bytes = Floats(2, 1)}, {.bytes = Floats(2, 1)}},
      {{.bytes = Floats(2, 1)}, {.offset = 8, .bytes = ""}},
  };
}

}  // namespace tfjob::ps
