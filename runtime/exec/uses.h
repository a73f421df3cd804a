// Determines how each value of a scheduled graph is used, and which node uses it last. Identity and
// Reshape return the memory of their input, so a use of their output counts as a use of the value
// that owns the memory (the source).
#pragma once

#include <map>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

struct Uses {
  int last = -1;             // position in the schedule of the last node that may read the memory
  bool fetched = false;      // must be dense, and must be kept until the next run
  bool reshaped = false;     // should be dense, so that Reshape and Scan need no copy
  bool overwritten = false;  // read from a variable that is written before the last use
};

// Returns the value that owns the output's memory, by following Identity and Reshape back to their
// inputs.
graph::Output SourceOf(const graph::Graph& graph, graph::Output output);

// Returns the uses of each source.
std::map<graph::Output, Uses> FindUses(const graph::Graph& graph, const std::vector<int>& schedule);

}  // namespace tfjob::exec
