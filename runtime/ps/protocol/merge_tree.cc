#include "runtime/ps/protocol/merge_tree.h"

#include <algorithm>

namespace tfjob::ps::protocol {
namespace {

// Places a chief that is not a worker before worker 0.
int64_t PositionOf(const Worker& worker) {
  return worker.type == "worker" ? int64_t{worker.index} + 1 : 0;
}

}  // namespace

std::vector<std::pair<Name, Name>> MergeTree::Add(const Name& name) {
  std::vector<std::pair<Name, Name>> merges;
  const int64_t position = PositionOf(name.worker);
  const auto covers = [&](const auto& root) {
    return root.first.index == position >> root.first.level;
  };
  if (position < 0 || std::ranges::any_of(roots_, covers)) return merges;
  Node node{.level = 0, .index = position};
  Name root = name;
  for (;;) {
    auto sibling = roots_.find({.level = node.level, .index = node.index ^ 1});
    if (sibling == roots_.end()) break;
    const bool right = (node.index & 1) != 0;
    const Name& into = right ? sibling->second : root;
    const Name& from = right ? root : sibling->second;
    merges.emplace_back(into, from);
    root = merges.back().first;
    roots_.erase(sibling);
    node = {.level = node.level + 1, .index = node.index >> 1};
  }
  roots_[node] = root;
  return merges;
}

}  // namespace tfjob::ps::protocol
