#include "runtime/exec/schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "runtime/graph/op.h"

namespace tfjob::exec {
namespace {

bool IsWrite(const graph::Node& node) {
  const graph::Op* op = graph::FindOp(node.op);
  return op != nullptr && op->effect == graph::Effect::kWrite;
}

// Adds the users of each read to the dependencies of the writes that depend on the read. A read
// copies nothing: its value is the variable's own memory. The users of the value must therefore run
// before any later write, like the read itself.
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

}  // namespace

// Gather's gradients never reject ids, because Gather has already accepted them.
bool MayRefuseValues(std::string_view op) {
  return op == "Gather";
}

std::vector<int> Schedule(const graph::Graph& graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::vector<int>> before = graph::StateDependencies(graph);
  AddUsersOfReads(graph, before);
  std::vector<int> keys(static_cast<size_t>(count));
  int last_check = -1;
  for (int id = 0; id < count; ++id) {
    int& key = keys[static_cast<size_t>(id)];
    key = id;
    if (MayRefuseValues(graph.node(id).op)) last_check = id;
    if (!IsWrite(graph.node(id))) continue;
    key = last_check;
    for (graph::Output input : graph.node(id).inputs) {
      key = std::max(key, keys[static_cast<size_t>(input.node)]);
    }
    for (int earlier : before[static_cast<size_t>(id)]) {
      key = std::max(key, keys[static_cast<size_t>(earlier)]);
    }
  }
  // Places each write directly after the last node that it waits for.
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int id) {
    return std::tuple(keys[static_cast<size_t>(id)], IsWrite(graph.node(id)), id);
  });
  return order;
}

}  // namespace tfjob::exec
