// Defines a rewriting pass for devices that have a kernel for MatMulBiasGrad.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Replaces each pair of a MatMul over the rows of dy and a BiasAddGrad of the same dy with one
// MatMulBiasGrad. Such pairs compute the gradients of a layer's weights and bias. The fused op
// reads dy only once. Leaves a pair separate if the other factor of the product is computed after
// the sum.
graph::Graph FuseBiasGradient(const graph::Graph& graph);

}  // namespace tfjob::exec
