// Counts the arithmetic operations of a graph.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::inference {

// Returns the number of floating-point operations in one run of the graph. In MatMul,
// BatchMatMulV2, Conv2D and Conv2DBackpropInput, counts a multiplication and an addition per
// product. For all other ops that compute values, counts one operation per output element. Does not
// count ops that only move values. Counts the body of a Scan once per step.
double FloatingPointOperations(const graph::Graph& graph);

}  // namespace tfjob::inference
