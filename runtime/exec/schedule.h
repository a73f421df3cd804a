// Decides the order in which a program runs a graph's nodes.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/tensor/attributes.h"

namespace tfjob::exec {

// Returns whether the op's kernel may reject the values of its inputs (Stream::Fail), which ends
// the run. A Scan's kernel may do so if a kernel of its body may.
bool MayRefuseValues(std::string_view op, const Attributes& attributes);

// Returns the nodes' positions in the order in which they run. This is the order of the graph,
// except for writes to variables and the nodes that depend on them. A write runs as early as its
// dependencies allow, but only after all checks (nodes that may reject values), so it does not run
// if a check rejects a value. There is one exception: if a check depends on the write, because it
// reads the variable later, the write waits only for the checks that precede the write. Since
// writes run early, a gradient is applied while it is still in the cache, and its memory can be
// reused for the next gradient.
std::vector<int> Schedule(const graph::Graph& graph);

}  // namespace tfjob::exec
