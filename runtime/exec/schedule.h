// Decides the order in which a program runs a graph's nodes.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Returns the nodes' positions in the order in which they run. This is the order of the graph,
// except that writes to variables run as early as their dependencies allow. A gradient is then
// applied while it is still in the cache, and its memory can be reused for the next gradient.
std::vector<int> Schedule(const graph::Graph& graph);

}  // namespace tfjob::exec
