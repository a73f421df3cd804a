// Builds the new graph while a pass walks the old graph, and keeps track of which new value
// replaces which old value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

class Rewriter {
 public:
  explicit Rewriter(const Graph& from) : from_(from) {}

  // Returns the value of the new graph that replaces a value of the old graph.
  Output Now(Output old) const;
  std::vector<Output> Now(const std::vector<Output>& old) const;
  const Graph& graph() const { return to_; }

  // Copies the old node `id` to the new graph. The outputs of the copy replace the outputs of the
  // old node.
  void Copy(int id);
  // Makes `now` replace `old`, which must have the same type.
  void Replace(Output old, Output now);
  // Appends a new node that has the device and the name (plus `suffix`) of the old node `id`.
  // Returns its first output. `inputs` are values of the new graph. The types are inferred. The
  // node does not replace any old value until Replace is called.
  Output Append(int id, std::string op, std::vector<Output> inputs, Attributes attributes,
                std::string_view suffix = "");
  // Adds the fetches of the old graph and returns the new graph.
  Graph Finish() &&;

 private:
  const Graph& from_;
  Graph to_;
  std::map<Output, Output> now_;
};

// Counts how often each output is used as an input or as a fetch.
std::map<Output, int> CountUses(const Graph& graph);

// Returns whether the node's op has no effect, so that the node may be dropped, merged or moved.
bool IsPure(const Node& node);

}  // namespace tfjob::graph
