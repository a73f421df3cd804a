// Defines a rewriting pass that is not in the graph package because it depends on optimizers.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// If the gradient of a plain SGD step on a matrix is a product a·b that has no other use, replaces
// the step w -= rate·a·b with one MatMulAccumulate into the variable. The gradient then never
// exists in memory.
graph::Graph FuseSgd(const graph::Graph& graph);

}  // namespace tfjob::exec
