// Defines a rewriting pass that depends on optimizers, and is therefore not in the graph package.
#pragma once

#include <cstddef>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Replaces each plain SGD step w -= rate·a·b with one MatMulAccumulate into the variable, if the
// product a·b has no other use. The gradient a·b is then never stored in memory. An SGD step is
// plain if it has no slots (momentum, averages), no weight decay and a constant rate. Gradients of
// up to `ignored` bytes are left alone. If `half_factors` is set, also replaces steps whose a and b
// have a half type, so that the gradient is not rounded to it.
graph::Graph FuseSgd(const graph::Graph& graph, size_t ignored = 0, bool half_factors = false);

}  // namespace tfjob::exec
