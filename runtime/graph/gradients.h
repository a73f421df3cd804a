// Declares reverse-mode differentiation. The functions append nodes that compute gradients.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/backpropagate.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {

// Appends the nodes that compute d loss / d wrt[i]. Returns these gradients in the order of `wrt`,
// each with the type of wrt[i]. `loss` must be a scalar of a float type. If a value is used several
// times, its gradient is the sum over its uses. If an operand was broadcast, its gradient is summed
// over the repeated axes and therefore has the operand's shape. Nodes are appended in the reverse
// order of the forward pass, so the gradients of the last layers come first.
//
// Reports an error to the builder if the loss is not a scalar of a float type, if the loss does not
// depend on wrt[i], or if an op between wrt[i] and the loss has no gradient. No gradient flows
// through integers, booleans or comparisons.
std::vector<Output> Gradients(Builder& b, Output loss, std::span<const Output> wrt);

// Like Gradients, except for matrices that the loss depends on only through Gather: for each of
// them, returns only the rows of the gradient that may be nonzero, and does not compute the dense
// gradient.
std::vector<GradientOrRows> GradientsOrRows(Builder& b, Output loss, std::span<const Output> wrt);

}  // namespace tfjob::graph
