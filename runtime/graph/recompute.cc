#include "runtime/graph/recompute.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/op.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

// Returns whether the node may be copied, that is, has no effects. Excludes sources without inputs,
// such as constants, because recomputing them would save no memory.
bool CanBeCopied(const Node& node) {
  return FindOp(node.op)->effect == Effect::kNone && !node.inputs.empty();
}

// Returns whether the gradient of the node adds outputs to it. If such a node is not copied, its
// additional outputs are kept from the forward pass until the gradient uses them.
bool GradientExtends(const Node& node) {
  return Subgraph::Find(node.attributes, "body") != nullptr;
}

}  // namespace

Recomputation::Recomputation(Builder& b, int last)
    : b_(b), last_use_(static_cast<size_t>(last) + 1, -1) {
  for (int id = 0; id <= last; ++id) {
    for (const Output input : b.graph().node(id).inputs)
      last_use_[static_cast<size_t>(input.node)] = id;
  }
}

Recomputation::Source Recomputation::SourceOf(int id) {
  const auto scope = std::ranges::find_if(
      b_.recomputed(), [&](const NodeRange& range) { return range.begin <= id && id < range.end; });
  if (scope == b_.recomputed().end()) return {b_.graph().node(id), id};
  if (!stand_in_.contains(scope->begin)) Append(*scope);
  const int now = stand_in_.at(id);
  Node node = b_.graph().node(now);
  node.inputs = Now(b_.graph().node(id).inputs);
  return {std::move(node), now};
}

bool Recomputation::IsKept(const NodeRange& scope, int id) const {
  const auto index = static_cast<size_t>(id);
  return index >= last_use_.size() || last_use_[index] >= scope.end || last_use_[index] < 0;
}

void Recomputation::Append(const NodeRange& scope) {
  for (int id = scope.begin; id < scope.end; ++id) {
    stand_in_[id] = id;
    const Node node = b_.graph().node(id);
    if (!CanBeCopied(node) || (IsKept(scope, id) && !GradientExtends(node))) continue;
    Attributes attributes = node.attributes;
    attributes.Set(kRecomputed, true);
    const Output copy = b_.Add(node.op, Now(node.inputs), std::move(attributes),
                               node.name.substr(node.name.rfind('/') + 1));
    if (!copy.valid()) return;
    stand_in_[id] = copy.node;
  }
}

Output Recomputation::Now(Output value) const {
  const auto found = stand_in_.find(value.node);
  return found == stand_in_.end() ? value : Output{found->second, value.index};
}

std::vector<Output> Recomputation::Now(const std::vector<Output>& values) const {
  std::vector<Output> now;
  for (const Output value : values) now.push_back(Now(value));
  return now;
}

}  // namespace tfjob::graph
