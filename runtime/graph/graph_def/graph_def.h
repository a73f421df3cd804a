// Writes graphs as TensorFlow's GraphDef (graph_def.proto), and reads them back. TensorBoard
// displays such a graph. TensorFlow can parse it but not run it, because the ops, although they
// have TensorFlow's names, take other attributes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

enum class Constants {
  kWhole,
  kSmall,  // the elements of constants above 1 KiB are left out, so the graph cannot be read back
};

// Returns the graph as the bytes of a GraphDef, which are the same for equal graphs. Returns
// ResourceExhausted if they would be 2 GiB or more, the limit of protobuf.
StatusOr<std::string> WriteGraphDef(const Graph& graph, Constants constants = Constants::kWhole);
// Returns the graph as a GraphDef in protobuf's text format. Large constants are left out.
std::string PrintGraphDef(const Graph& graph);

// Reads what WriteGraphDef has written with Constants::kWhole; the result equals the graph that was
// written. The bytes may come from anyone: types and shapes are derived again, and compared with
// those in the GraphDef. Errors name the node.
//  - Unimplemented: this program does not know an op, or knows another version of it.
//  - InvalidArgument: the bytes are not a GraphDef, or the graph is malformed.
StatusOr<Graph> ReadGraphDef(std::string_view bytes);

}  // namespace tfjob::graph
