// Reading constants of a graph.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// The value of all elements of a Const or Fill of floats or integers, when they are equal and there
// are any.
std::optional<double> UniformValue(const Graph& graph, Output output);

// A scalar of a numeric dtype.
Tensor ScalarOf(DType dtype, double value);

}  // namespace tfjob::graph
