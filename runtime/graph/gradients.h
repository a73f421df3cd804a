// Reverse-mode differentiation as a transformation of the graph.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/builder.h"

namespace tfjob::graph {

// Appends the nodes that compute d loss / d wrt[i] and returns them in the order of `wrt`, each
// with the type of wrt[i]. `loss` is a scalar of a float type. Contributions of several uses are
// summed, and a broadcast operand's gradient is reduced to its shape. Nodes are appended in reverse
// order of the forward pass, so gradients of late layers come first.
//
// Errors stick to the builder: an op without a gradient between wrt and loss, a wrt[i] on which
// the loss does not depend, a loss that is not a scalar. Integers, booleans and comparisons
// carry no gradient.
std::vector<Output> Gradients(Builder& b, Output loss, std::span<const Output> wrt);

}  // namespace tfjob::graph
