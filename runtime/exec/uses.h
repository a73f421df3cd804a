// Finds the uses of each value of a scheduled graph, and the last one. Identity and Reshape pass on
// their input's memory, so uses of them count as uses of the value behind them, their source.
#pragma once

#include <map>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

struct Uses {
  int last = -1;             // position in the schedule of the last node that may read the memory
  bool fetched = false;      // kept until the next run, and dense
  bool reshaped = false;     // dense, so that Reshape costs nothing
  bool overwritten = false;  // a source in a variable's memory that is written before the last use
};

// Follows Identity and Reshape to the value that the memory comes from.
graph::Output SourceOf(const graph::Graph& graph, graph::Output output);

// Returns the uses of each source.
std::map<graph::Output, Uses> FindUses(const graph::Graph& graph, const std::vector<int>& schedule);

}  // namespace tfjob::exec
