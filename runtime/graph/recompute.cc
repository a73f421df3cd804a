#include "runtime/graph/recompute.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/op.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

// Returns whether the node may be copied, that is, has no effects, and a copy may save memory.
// Sources without inputs, such as constants, take no memory. A Gather may reject ids, so all
// updates of variables would wait for its copy. If its table is on parameter servers, the copy
// would also need the rows a second time.
bool CanBeCopied(const Node& node) {
  return FindOp(node.op)->effect == Effect::kNone && !node.inputs.empty() && node.op != "Gather";
}

// Returns whether the gradient needs a copy of the node even if the values of the node are kept.
bool GradientNeedsCopy(const Node& node) {
  // The gradient adds outputs to an op with a body. Without a copy, the op would compute these
  // outputs in the forward pass, and they would be kept until the backward pass.
  const bool extends = Subgraph::Find(node.attributes, "body") != nullptr;
  // These gradients compare the output with the input. In half types, passes may fuse the ops
  // before the copy differently, so the input may be rounded differently.
  const bool compares = node.op == "Max" || node.op == "Min" || node.op == "MaxPool";
  return extends || compares;
}

// Returns whether the output is the memory of the input.
bool IsView(const Node& node) {
  return node.op == "Reshape" || node.op == "Identity";
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

std::vector<bool> Recomputation::FindKept(const NodeRange& scope) const {
  std::vector<bool> kept(static_cast<size_t>(scope.end - scope.begin));
  for (int id = scope.end - 1; id >= scope.begin; --id) {
    const auto index = static_cast<size_t>(id);
    const bool used_only_inside =
        index < last_use_.size() && last_use_[index] >= 0 && last_use_[index] < scope.end;
    const size_t at = index - static_cast<size_t>(scope.begin);
    kept[at] = kept[at] || !used_only_inside;
    const Node& node = b_.graph().node(id);
    if (!kept[at] || !IsView(node) || node.inputs[0].node < scope.begin) continue;
    kept[static_cast<size_t>(node.inputs[0].node - scope.begin)] = true;
  }
  return kept;
}

void Recomputation::Append(const NodeRange& scope) {
  const std::vector<bool> kept = FindKept(scope);
  for (int id = scope.begin; id < scope.end; ++id) {
    stand_in_[id] = id;
    const Node node = b_.graph().node(id);
    const bool is_kept = kept[static_cast<size_t>(id - scope.begin)];
    if (!CanBeCopied(node) || (is_kept && !GradientNeedsCopy(node))) continue;
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
