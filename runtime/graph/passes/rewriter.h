// Helps a pass to build a new graph while it walks the old one. Records which new value replaces
// each old value.
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

  // Returns the new value that replaces an old value.
  Output Now(Output old) const;
  std::vector<Output> Now(const std::vector<Output>& old) const;
  const Graph& graph() const { return to_; }

  // Copies old node `id` to the new graph. The outputs of the copy replace those of the old node.
  void Copy(int id);
  // Records that `now` replaces `old`. Both must have the same type.
  void Replace(Output old, Output now);
  // Appends a new node and returns its first output. The node has the device and the name (plus
  // `suffix`) of old node `id`. `inputs` are values of the new graph. The output types are
  // inferred. Does not replace any old value; call Replace for this.
  Output Append(int id, std::string op, std::vector<Output> inputs, Attributes attributes,
                std::string_view suffix = "");
  // Adds the fetches of the old graph to the new graph, and returns the new graph.
  Graph Finish() &&;

 private:
  const Graph& from_;
  Graph to_;
  std::map<Output, Output> now_;
};

// Counts how often each output is used as an input or as a fetch.
std::map<Output, int> CountUses(const Graph& graph);

// Returns whether the node's op has no effects, in which case the node may be dropped, merged or
// moved.
bool IsPure(const Node& node);

}  // namespace tfjob::graph
