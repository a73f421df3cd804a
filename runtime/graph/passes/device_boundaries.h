// Recognises the nodes that keep passes from merging nodes with different device constraints.
#pragma once

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Returns whether MarkDeviceBoundaries (passes.h) has added the node.
bool IsDeviceBoundary(const Node& node);

}  // namespace tfjob::graph
