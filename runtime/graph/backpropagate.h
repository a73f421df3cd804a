// Implements reverse-mode differentiation that starts from any values whose gradients are known.
// Gradients (gradients.h) handles the special case of a single scalar.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {

// Represents a gradient: either a dense tensor or, for a matrix, only the rows that may be nonzero.
struct GradientOrRows {
  Output dense;  // invalid if the gradient is in `rows`
  DistinctRows rows;

  bool by_rows() const { return !dense.valid(); }
  // Returns the dense gradient, or the values of the rows that may be nonzero.
  Output values() const { return by_rows() ? rows.values : dense; }
};
// Appends the nodes that compute d loss / d wrt[i], where gradients[j] is d loss / d values[j].
// Returns one gradient per element of `wrt`. Gradient i is a default value if no element of
// `values` depends on wrt[i] through differentiable ops. If `rows` is set, gradients are given by
// rows in the same cases as in GradientsOrRows (gradients.h).
std::vector<GradientOrRows> Backpropagate(Builder& b, std::span<const Output> values,
                                          std::span<const Output> gradients,
                                          std::span<const Output> wrt, bool rows);

}  // namespace tfjob::graph
