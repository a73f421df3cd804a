// Reads and creates constants of a graph.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Returns the value that all elements of a Fill, or of a float32, float64 or int32 Const, have in
// common. Returns nullopt for any other node, and for a Const that is empty or has different
// elements.
std::optional<double> UniformValue(const Graph& graph, Output output);

// Returns `value` as a scalar tensor, or nullopt if `dtype` is not float32, float64 or int32.
std::optional<Tensor> ScalarOf(DType dtype, double value);

}  // namespace tfjob::graph
