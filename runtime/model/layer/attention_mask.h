// Combines the masks of an attention layer.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

// Combines masks that broadcast to scores [batch,…,T,S]. The combined mask is true only where every
// mask is true.
class AttentionMask {
 public:
  explicit AttentionMask(graph::Builder& b) : b_(b) {}

  // Adds a mask, if it is valid. Nonzero elements of a numeric mask count as true.
  void Add(graph::Output mask);
  // Add a mask [batch,S] of the keys, or [batch,T] of the queries, if it is valid. `rank` is the
  // rank of the scores.
  void AddKeys(graph::Output mask, int rank);
  void AddQueries(graph::Output mask, int rank);
  // Masks, for each query, all keys at later positions.
  void AddCausal(int64_t queries, int64_t keys);
  // Masks, for each query, all keys that are `window` or more positions away.
  void AddWindow(int64_t queries, int64_t keys, int64_t window);

  // Returns the combination of all masks, or an invalid Output if there are none.
  graph::Output combined() const { return combined_; }

 private:
  graph::Builder& b_;
  graph::Output combined_;
};

// Returns InvalidArgument if examples of query [T,…] and value [S,…] have too many positions for
// AddCausal or AddWindow.
Status CheckPositions(const Shape& query, const Shape& value);

}  // namespace tfjob::model
