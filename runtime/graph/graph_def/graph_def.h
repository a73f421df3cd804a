// Writes graphs as TensorFlow's GraphDef (graph_def.proto), and reads them back. TensorBoard can
// display such a graph. TensorFlow can parse such a graph but not run it: the ops have TensorFlow's
// names, but different attributes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

enum class Constants {
  kWhole,
  kSmall,  // omits the elements of constants above 1 KiB; the graph cannot be read back
};

// Returns the graph as a serialized GraphDef. Equal graphs produce identical bytes. Returns
// ResourceExhausted if the result would be 2 GiB or larger, which protobuf does not support.
StatusOr<std::string> WriteGraphDef(const Graph& graph, Constants constants = Constants::kWhole);
// Returns the graph as a GraphDef in protobuf's text format. Omits the elements of large constants.
std::string PrintGraphDef(const Graph& graph);

// Reads a graph that WriteGraphDef has written with Constants::kWhole. The result equals the
// original graph. `bytes` may come from an untrusted source: types and shapes are inferred again,
// and compared with those in the GraphDef. Errors name the node.
//  - Unimplemented: the graph contains an op that this program lacks, or a different version of an
//    op.
//  - InvalidArgument: the bytes are not a GraphDef, or the graph is malformed.
StatusOr<Graph> ReadGraphDef(std::string_view bytes);

}  // namespace tfjob::graph
