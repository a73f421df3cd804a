// Separates a graph from tables of which it reads only a few rows, so that the tables need not be
// stored where the graph runs. A second graph computes the indices of these rows from the feeds;
// the main graph is fed the rows.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// One Gather from a table.
struct Lookup {
  std::string op;      // the name of its node, for error messages
  std::string ids;     // the fetch of the ids graph: int32[n] or int64[n], not checked yet
  std::string places;  // the feed of the main graph: int64[n], the position of each row in `rows`
};

struct RowTable {
  std::string variable;
  TensorType type;   // the type of the whole table, a matrix
  std::string rows;  // the feed of the main graph: [number of all ids, columns of the table]
  std::vector<Lookup> lookups;
};

struct SeparatedGraph {
  Graph graph;  // without the tables
  Graph ids;    // its feeds are those feeds of the original graph on which the ids depend
  std::vector<RowTable> tables;
};

// Returns the variables that may be separated: matrices that the graph never writes, and that it
// uses only in Gathers of rows whose indices do not depend on a variable.
std::vector<std::string> SeparableTables(const Graph& graph);

// Separates the given variables. The gradient by rows of such a table still identifies rows by
// their indices in the whole table. Returns InvalidArgument if a variable is not in
// SeparableTables.
StatusOr<SeparatedGraph> SeparateTables(const Graph& graph,
                                        const std::vector<std::string>& variables);

}  // namespace tfjob::graph
