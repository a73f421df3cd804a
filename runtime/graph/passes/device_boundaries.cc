#include "runtime/graph/passes/device_boundaries.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

constexpr char kBoundary[] = "device_boundary";

}  // namespace

bool IsDeviceBoundary(const Node& node) {
  return node.op == "Identity" && node.attributes.Get(kBoundary, false);
}

Graph MarkDeviceBoundaries(const Graph& graph) {
  const bool one_device = std::ranges::all_of(
      graph.nodes(), [&](const Node& node) { return node.device == graph.node(0).device; });
  if (one_device) return graph;
  Graph marked;
  std::vector<int> position;                               // by the position in `graph`
  std::map<std::pair<Output, std::string>, Output> found;  // by old value and device of its user
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    for (Output& input : copy.inputs) {
      const Node& source = graph.node(input);
      const Output moved{position[static_cast<size_t>(input.node)], input.index};
      if (source.device == node.device) {
        input = moved;
        continue;
      }
      Output& boundary = found[{input, node.device}];
      if (!boundary.valid()) {
        boundary = {marked.Append({.op = "Identity",
                                   .name = StrCat(graph.NameOf(input), "/to/", node.name),
                                   .inputs = {moved},
                                   .attributes = {{kBoundary, true}},
                                   .outputs = {graph.type(input)},
                                   .device = node.device}),
                    0};
      }
      input = boundary;
    }
    position.push_back(marked.Append(std::move(copy)));
  }
  for (const Fetch& fetch : graph.fetches()) {
    marked.AddFetch(
        {fetch.name, {position[static_cast<size_t>(fetch.output.node)], fetch.output.index}});
  }
  return marked;
}

Graph DropDeviceBoundaries(const Graph& graph) {
  if (std::ranges::none_of(graph.nodes(), IsDeviceBoundary)) return graph;
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const Node& node = graph.node(id); IsDeviceBoundary(node)) {
      rewriter.Replace({id, 0}, rewriter.Now(node.inputs[0]));
    } else {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
