// A rewriting pass that knows optimizers, and so is not the graph's own.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// A plain SGD step upon a matrix whose gradient is a product of no other use, w -= rate·a·b,
// becomes one MatMulAccumulate into the variable: the gradient never exists in memory.
graph::Graph FuseSgd(const graph::Graph& graph);

}  // namespace tfjob::exec
