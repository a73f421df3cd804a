// Decides the order in which a program runs a graph's nodes.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

// Returns whether the op's kernel may reject the values of its inputs (Stream::Fail), which ends
// the run.
bool MayRefuseValues(std::string_view op);

// Returns the nodes' positions in the order in which they run. This is the order of the graph,
// except that writes to variables run as early as their dependencies allow, but only after all
// earlier nodes that can reject values, so that a run that fails writes nothing. A gradient is then
// applied while it is still in the cache, and its memory can be reused for the next gradient.
std::vector<int> Schedule(const graph::Graph& graph);

}  // namespace tfjob::exec
