#include "runtime/exec/uses.h"

#include <algorithm>
#include <string>

#include "runtime/graph/op.h"

namespace tfjob::exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;

bool HandsOn(const Node& node) {
  return node.op == "Identity" || node.op == "Reshape";
}

// Marks each value that is read from a variable, if the variable is written before the value's last
// use.
void MarkOverwritten(const Graph& graph, const std::vector<int>& schedule,
                     std::map<Output, Uses>& uses) {
  std::map<std::string, std::vector<int>> reads;  // reads of each variable since its last write
  for (int at = 0; at < static_cast<int>(schedule.size()); ++at) {
    const int id = schedule[static_cast<size_t>(at)];
    const Node& node = graph.node(id);
    const graph::Op* op = graph::FindOp(node.op);
    const std::string* variable = node.attributes.Find<std::string>("variable");
    if (op == nullptr || variable == nullptr) continue;
    if (op->effect == graph::Effect::kRead) reads[*variable].push_back(id);
    if (op->effect != graph::Effect::kWrite) continue;
    for (int read : reads[*variable]) {
      Uses& use = uses[Output{read, 0}];
      if (use.last >= at) use.overwritten = true;
    }
    reads.erase(*variable);
  }
}

}  // namespace

Output SourceOf(const Graph& graph, Output output) {
  while (HandsOn(graph.node(output))) output = graph.node(output).inputs[0];
  return output;
}

std::map<Output, Uses> FindUses(const Graph& graph, const std::vector<int>& schedule) {
  std::map<Output, Uses> uses;
  for (int at = 0; at < static_cast<int>(schedule.size()); ++at) {
    const Node& node = graph.node(schedule[static_cast<size_t>(at)]);
    for (Output input : node.inputs) {
      Uses& use = uses[SourceOf(graph, input)];
      use.last = std::max(use.last, at);
      if (node.op == "Reshape" || node.op == "Scan") use.reshaped = true;
    }
  }
  for (const graph::Fetch& fetch : graph.fetches()) {
    uses[SourceOf(graph, fetch.output)].fetched = true;
  }
  MarkOverwritten(graph, schedule, uses);
  return uses;
}

}  // namespace tfjob::exec
