// Defines a rewriting pass that depends on optimizers, and is therefore not in the graph package.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Replaces each plain SGD step w -= rate·a·b with one MatMulAccumulate into the variable, if the
// product a·b has no other use. The gradient a·b is then never stored in memory. An SGD step is
// plain if it has no slots (momentum, averages), no weight decay and a constant rate.
graph::Graph FuseSgd(const graph::Graph& graph);

}  // namespace tfjob::exec
