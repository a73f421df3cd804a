// Implements reverse-mode differentiation from any values whose gradients are given. Gradients
// (gradients.h) is the special case that starts from one scalar.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {

// Holds a dense gradient, or the rows of a matrix's gradient that may differ from zero.
struct GradientOrRows {
  Output dense;  // if invalid, the gradient is in `rows`
  DistinctRows rows;

  bool by_rows() const { return !dense.valid(); }
  // Returns the part of the gradient that is not known to be zero.
  Output values() const { return by_rows() ? rows.values : dense; }
};
// Appends the nodes that compute the gradients of `wrt`, given the gradients of `values`: d loss /
// d wrt[i], if gradients[j] is d loss / d values[j]. Returns a default value for each wrt[i] on
// which none of `values` depends through differentiable ops. If `rows` is set, returns gradients by
// rows in the same cases as GradientsOrRows (gradients.h).
std::vector<GradientOrRows> Backpropagate(Builder& b, std::span<const Output> values,
                                          std::span<const Output> gradients,
                                          std::span<const Output> wrt, bool rows);

}  // namespace tfjob::graph
