#include "runtime/exec/schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "runtime/graph/op.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::exec {
namespace {

bool IsWrite(const graph::Node& node) {
  const graph::Op* op = graph::FindOp(node.op);
  return op != nullptr && op->effect == graph::Effect::kWrite;
}

// Makes each write of a variable also depend on the nodes that use the values of earlier reads. A
// read does not copy: its value is the variable's own memory. Not only the read, but all users of
// its value, must therefore run before any later write.
void AddUsersOfReads(const graph::Graph& graph, std::vector<std::vector<int>>& before) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::vector<int>> users(static_cast<size_t>(count));
  for (int id = 0; id < count; ++id) {
    for (graph::Output input : graph.node(id).inputs) {
      users[static_cast<size_t>(input.node)].push_back(id);
    }
  }
  for (int id = 0; id < count; ++id) {
    if (!IsWrite(graph.node(id))) continue;
    std::vector<int>& dependencies = before[static_cast<size_t>(id)];
    for (size_t i = 0, reads = dependencies.size(); i < reads; ++i) {
      for (int user : users[static_cast<size_t>(dependencies[i])]) {
        if (user < id) dependencies.push_back(user);
      }
    }
  }
}

// Adds the inputs of each node to its dependencies.
void AddInputs(const graph::Graph& graph, std::vector<std::vector<int>>& before) {
  for (size_t id = 0; id < before.size(); ++id) {
    for (graph::Output input : graph.node(static_cast<int>(id)).inputs)
      before[id].push_back(input.node);
  }
}

bool IsCheck(const graph::Node& node) {
  return MayRefuseValues(node.op, node.attributes);
}

// Returns, for each node, whether it may reject values, or is needed by a node that may.
std::vector<bool> FindNeededByChecks(const graph::Graph& graph,
                                     const std::vector<std::vector<int>>& before) {
  std::vector<bool> needed(before.size());
  for (size_t id = before.size(); id-- > 0;) {
    needed[id] = needed[id] || IsCheck(graph.node(static_cast<int>(id)));
    if (!needed[id]) continue;
    for (int earlier : before[id]) needed[static_cast<size_t>(earlier)] = true;
  }
  return needed;
}

// Returns, for each node, the position of the last node that it must wait for, or its own position
// if it does not have to wait for a later node.
std::vector<int> FindAwaited(const graph::Graph& graph,
                             const std::vector<std::vector<int>>& before) {
  const std::vector<bool> needed = FindNeededByChecks(graph, before);
  int last_check = -1;
  for (int id = 0; id < static_cast<int>(before.size()); ++id)
    if (IsCheck(graph.node(id))) last_check = id;
  std::vector<int> awaited(before.size());
  int check = -1;  // the last check so far
  for (size_t id = 0; id < before.size(); ++id) {
    const graph::Node& node = graph.node(static_cast<int>(id));
    if (IsCheck(node)) check = static_cast<int>(id);
    awaited[id] = static_cast<int>(id);
    if (IsWrite(node)) awaited[id] = needed[id] ? check : last_check;
    for (int earlier : before[id])
      awaited[id] = std::max(awaited[id], awaited[static_cast<size_t>(earlier)]);
  }
  return awaited;
}

}  // namespace

// Gather's gradients are not listed, because they only use ids that Gather has already accepted.
bool MayRefuseValues(std::string_view op, const Attributes& attributes) {
  if (op == "Gather" || op == "CheckNumerics") return true;
  const graph::Graph* const body = graph::Subgraph::Find(attributes, "body");
  return body != nullptr && std::ranges::any_of(body->nodes(), IsCheck);
}

std::vector<int> Schedule(const graph::Graph& graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::vector<int>> before = graph::StateDependencies(graph);
  AddUsersOfReads(graph, before);
  AddInputs(graph, before);
  const std::vector<int> awaited = FindAwaited(graph, before);
  // Places each write, and everything that depends on it, directly after the last node that it
  // waits for.
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int id) {
    const int last = awaited[static_cast<size_t>(id)];
    return std::tuple(last, last != id || IsWrite(graph.node(id)), id);
  });
  return order;
}

}  // namespace tfjob::exec
