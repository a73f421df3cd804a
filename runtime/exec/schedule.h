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
// except for writes to variables. A write runs as early as its dependencies allow, but only after
// all preceding nodes of the graph that can reject values, so that it does not run if one of these
// nodes rejects its values. Since writes run early, a gradient is applied while it is still in the
// cache, and its memory can be reused for the next gradient.
std::vector<int> Schedule(const graph::Graph& graph);

}  // namespace tfjob::exec
