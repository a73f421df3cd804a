// A rewriting pass that depends on optimizers and therefore is not in the graph package.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Replaces a plain SGD step on a matrix, w -= rate·a·b, by one MatMulAccumulate into the variable
// if the gradient is a product without another use. The gradient then never exists in memory.
graph::Graph FuseSgd(const graph::Graph& graph);

}  // namespace tfjob::exec
