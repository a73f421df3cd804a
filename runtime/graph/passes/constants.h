// Reads constants of a graph.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Returns the common value of all elements of a Fill, or of a Const of float32, float64 or int32.
// Returns nullopt for anything else, and for a Const whose elements differ or that has none.
std::optional<double> UniformValue(const Graph& graph, Output output);

// Returns a scalar of a numeric dtype.
Tensor ScalarOf(DType dtype, double value);

}  // namespace tfjob::graph
