// Builds the rewritten graph of a pass while it walks the old one, keeping track of which value
// took whose place.
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

  // The value in the new graph that stands for an old one.
  Output Now(Output old) const;
  std::vector<Output> Now(const std::vector<Output>& old) const;
  const Graph& graph() const { return to_; }

  // Copies an old node; its outputs stand for the old ones.
  void Copy(int id);
  // `now` stands for `old`, which must have its type.
  void Replace(Output old, Output now);
  // Appends a new node in place of the old node `id`, whose device and name (and `suffix`) it
  // takes; `inputs` are of the new graph. Its types are inferred. Stands for nothing yet.
  Output Append(int id, std::string op, std::vector<Output> inputs, Attributes attributes,
                std::string_view suffix = "");
  // The fetches of the old graph, then the new graph.
  Graph Finish() &&;

 private:
  const Graph& from_;
  Graph to_;
  std::map<Output, Output> now_;
};

// How often each output is used as an input, and how often as a fetch.
std::map<Output, int> CountUses(const Graph& graph);

// Whether an op of the table has no effect, and the node may be dropped, merged or moved.
bool IsPure(const Node& node);

}  // namespace tfjob::graph
