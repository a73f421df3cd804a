// Reads and creates constants of a graph.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Returns the common value of all elements of a Fill, or of a Const of float32, float64 or
// int32. Returns nullopt for any other node, and for a Const that has no elements or whose
// elements differ.
std::optional<double> UniformValue(const Graph& graph, Output output);

// Returns a scalar, or nullopt if `dtype` is not float32, float64 or int32.
std::optional<Tensor> ScalarOf(DType dtype, double value);

}  // namespace tfjob::graph
