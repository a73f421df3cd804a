// The order in which a program runs a graph's nodes.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// The nodes' positions in the order of the list, but writes to variables as early as what they
// depend on allows: a gradient is applied while it is still in the cache, and its memory is free
// for the next.
std::vector<int> Schedule(const graph::Graph& graph);

}  // namespace tfjob::exec
