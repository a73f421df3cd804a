// Who uses each value of a scheduled graph, and until when. Identity and Reshape hand on their
// input's memory, so that uses of theirs are uses of the value that they stand for: its source.
#pragma once

#include <map>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::exec {

struct Uses {
  int last = -1;             // position in the schedule of the last node that may read the memory
  bool fetched = false;      // kept until the next run, and dense
  bool reshaped = false;     // dense, so that Reshape costs nothing
  bool overwritten = false;  // a source that is a variable's memory, written before the last use
};

// Follows Identity and Reshape to where the memory comes from.
graph::Output SourceOf(const graph::Graph& graph, graph::Output output);

// Of each source.
std::map<graph::Output, Uses> FindUses(const graph::Graph& graph, const std::vector<int>& schedule);

}  // namespace tfjob::exec
