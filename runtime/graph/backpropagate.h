// Implements reverse-mode differentiation from any values with given gradients. Gradients
// (gradients.h) is the case of one scalar.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {

// Either a dense gradient, or one of a matrix that is zero but for the given rows.
struct GradientOrRows {
  Output dense;  // invalid: see `rows`
  DistinctRows rows;

  bool by_rows() const { return !dense.valid(); }
  // Returns the values that are not known to be zero.
  Output values() const { return by_rows() ? rows.values : dense; }
};
// Appends the nodes that compute the gradients of `wrt`, given the gradients of `values`: d loss /
// d wrt[i], if gradients[j] is d loss / d values[j]. Returns default values where none depends on
// wrt[i] through differentiable ops. With `rows`, returns gradients by rows where GradientsOrRows
// does. gradients.h describes the rest.
std::vector<GradientOrRows> Backpropagate(Builder& b, std::span<const Output> values,
                                          std::span<const Output> gradients,
                                          std::span<const Output> wrt, bool rows);

}  // namespace tfjob::graph
