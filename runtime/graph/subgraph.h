// Stores a graph as an attribute of a node, such as the body of a Scan (scan.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

class Subgraph final : public GraphAttribute {
 public:
  explicit Subgraph(Graph graph) : graph_(std::move(graph)) {}

  static GraphPointer Of(Graph graph) { return std::make_shared<Subgraph>(std::move(graph)); }
  // Returns the graph in the attribute `name`, or null if there is no such attribute.
  static const Graph* Find(const Attributes& attributes, std::string_view name);

  const Graph& graph() const { return graph_; }
  // Prints the graph in braces, with indented lines.
  std::string ToString() const override;
  bool Equals(const GraphAttribute& other) const override;

 private:
  Graph graph_;
};

}  // namespace tfjob::graph
