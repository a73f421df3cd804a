// Helps the tests of passes to finish graphs and to look at their nodes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

using Ops = std::vector<std::string>;

// Returns the names of a graph's ops in order, except for sources.
inline Ops OpsOf(const Graph& graph) {
  Ops ops;
  for (const Node& node : graph.nodes()) {
    if (!node.inputs.empty()) ops.push_back(node.op);
  }
  return ops;
}

// Returns the first node with this op, or null if there is none.
inline const Node* FindNode(const Graph& graph, std::string_view op) {
  const auto found = std::ranges::find(graph.nodes(), op, &Node::op);
  return found == graph.nodes().end() ? nullptr : &*found;
}

// Expects that the graph could be built, and returns it.
inline Graph Finished(Builder& b) {
  EXPECT_TRUE(b.ok()) << b.status();
  return *std::move(b).Finish();
}

}  // namespace tfjob::graph
