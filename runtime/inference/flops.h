// Counts the arithmetic of a graph.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::inference {

// Returns the number of floating-point operations of one run of the graph: a multiplication and an
// addition for each product in MatMul, BatchMatMulV2, Conv2D and Conv2DBackpropInput, and one
// operation per output element of every other op that computes values. Ops that only move values
// are not counted. The body of a Scan is counted once per step.
double FloatingPointOperations(const graph::Graph& graph);

}  // namespace tfjob::inference
