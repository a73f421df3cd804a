// Separates a graph from large tables of which it reads only a few rows. The tables then need not
// be stored where the graph runs: a second graph computes the indices of the rows from the feeds,
// and the rows themselves are fed to the main graph.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Describes one Gather from a table.
struct Lookup {
  std::string op;      // the Gather's name, for error messages
  std::string ids;     // a fetch of the ids graph: unchecked ids, int32[n] or int64[n]
  std::string places;  // a feed of the main graph: the position of each row in `rows`, int64[n]
};

struct RowTable {
  std::string variable;
  TensorType type;   // the type of the whole table, a matrix
  std::string rows;  // a feed of the main graph: [total number of ids, columns of the table]
  std::vector<Lookup> lookups;
};

struct SeparatedGraph {
  Graph graph;  // the main graph, without the tables
  Graph ids;    // has only those feeds of the original graph that the ids depend on
  std::vector<RowTable> tables;
};

// Returns the variables that may be separated: matrices that the graph never writes and uses only
// in Gathers, with indices that do not depend on a variable.
std::vector<std::string> SeparableTables(const Graph& graph);

// Separates the given variables. The rows of a table's gradient are still identified by their
// indices in the whole table. Returns InvalidArgument if any of the variables is not in
// SeparableTables.
StatusOr<SeparatedGraph> SeparateTables(const Graph& graph,
                                        const std::vector<std::string>& variables);

}  // namespace tfjob::graph
