#include "runtime/graph/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {
namespace {

std::string PrintInputs(const Graph& graph, const Node& node) {
  std::vector<std::string> texts;
  for (Output input : node.inputs) texts.push_back(graph.NameOf(input));
  std::string attributes = node.attributes.ToString();
  if (!attributes.empty()) texts.push_back(std::move(attributes));
  return absl::StrJoin(texts, ", ");
}

std::string PrintNode(const Graph& graph, const Node& node) {
  std::string text = node.name + " = " + node.op + "(" + PrintInputs(graph, node) + ")";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    text += (i == 0 ? " : " : ", ") + node.outputs[i].ToString();
  }
  if (!node.device.empty()) text += " @" + node.device;
  return text + "\n";
}

// Records which of the nodes visited so far access a given variable.
struct Accesses {
  int last_write = -1;
  std::vector<int> reads_since;
};

}  // namespace

std::string TensorType::ToString() const {
  return std::string(Name(dtype)) + shape.ToString();
}

const Fetch* Graph::FindFetch(std::string_view name) const {
  const auto found = std::ranges::find(fetches_, name, &Fetch::name);
  return found == fetches_.end() ? nullptr : &*found;
}

int Graph::Append(Node node) {
  const int id = static_cast<int>(nodes_.size());
  for (Output input : node.inputs) {
    ENFORCE(input.valid() && input.node < id, "inputs come from earlier nodes");
  }
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::Extend(int id, Attributes attributes, std::vector<TensorType> outputs) {
  Node& node = nodes_[static_cast<size_t>(id)];
  const bool kept = node.outputs.size() <= outputs.size() &&
                    std::equal(node.outputs.begin(), node.outputs.end(), outputs.begin());
  ENFORCE(kept, "an extended node keeps its outputs");
  node.attributes = std::move(attributes);
  node.outputs = std::move(outputs);
}

std::string Graph::NameOf(Output output) const {
  const std::string& name = node(output).name;
  return output.index == 0 ? name : StrCat(name, ":", output.index);
}

std::string Graph::ToString() const {
  std::string text;
  for (const Node& node : nodes_) text += PrintNode(*this, node);
  for (const Fetch& fetch : fetches_) {
    text += "fetch " + fetch.name + " = " + NameOf(fetch.output) + "\n";
  }
  return text;
}

std::vector<std::vector<int>> StateDependencies(const Graph& graph) {
  std::vector<std::vector<int>> before(graph.nodes().size());
  std::map<std::string, Accesses> variables;
  int exchange = -1;  // the last exchange so far
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const std::string* name = node.attributes.Find<std::string>("variable");
    const Op* op = FindOp(node.op);
    std::vector<int>& dependencies = before[static_cast<size_t>(id)];
    if (op != nullptr && op->effect == Effect::kExchange) {
      if (exchange >= 0) dependencies.push_back(exchange);
      exchange = id;
    }
    if (name == nullptr || op == nullptr) continue;
    Accesses& accesses = variables[*name];
    if (accesses.last_write >= 0) dependencies.push_back(accesses.last_write);
    if (op->effect == Effect::kRead) accesses.reads_since.push_back(id);
    if (op->effect != Effect::kWrite) continue;
    dependencies.insert(dependencies.end(), accesses.reads_since.begin(),
                        accesses.reads_since.end());
    accesses = {id, {}};
  }
  return before;
}

}  // namespace tfjob::graph
