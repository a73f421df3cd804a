// Defines a rewriting pass for devices that have a kernel for MatMulBiasGrad.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Replaces the products and sums that compute the gradients of a layer's weights and bias with
// MatMulBiasGrad: MatMul over the rows of dy, and BiasAddGrad of the same dy. The gradient dy is
// then read only once. Leaves them separate if the other factor of the product is computed after
// the sum.
graph::Graph FuseBiasGradient(const graph::Graph& graph);

}  // namespace tfjob::exec
