#include "runtime/graph/passes/rewriter.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {

Output Rewriter::Now(Output old) const {
  const auto found = now_.find(old);
  ENFORCE(found != now_.end(), "a pass maps what it uses");
  return found->second;
}

std::vector<Output> Rewriter::Now(const std::vector<Output>& old) const {
  std::vector<Output> now;
  for (Output output : old) now.push_back(Now(output));
  return now;
}

void Rewriter::Copy(int id) {
  Node node = from_.node(id);
  node.inputs = Now(node.inputs);
  const int outputs = static_cast<int>(node.outputs.size());
  const int copy = to_.Append(std::move(node));
  for (int i = 0; i < outputs; ++i) now_[{id, i}] = {copy, i};
}

void Rewriter::Replace(Output old, Output now) {
  ENFORCE(from_.type(old) == to_.type(now), "a value is replaced by one of its type");
  now_[old] = now;
}

Output Rewriter::Append(int id, std::string op, std::vector<Output> inputs, Attributes attributes,
                        std::string_view suffix) {
  std::vector<TensorType> types;
  for (Output input : inputs) types.push_back(to_.type(input));
  auto outputs = InferTypes(op, types, attributes);
  ENFORCE(outputs.ok(), Message(outputs.status()));
  Node node{std::move(op),       from_.node(id).name + std::string(suffix),
            std::move(inputs),   std::move(attributes),
            *std::move(outputs), from_.node(id).device};
  return {to_.Append(std::move(node)), 0};
}

Graph Rewriter::Finish() && {
  for (const Fetch& fetch : from_.fetches()) to_.AddFetch({fetch.name, Now(fetch.output)});
  return std::move(to_);
}

std::map<Output, int> CountUses(const Graph& graph) {
  std::map<Output, int> uses;
  for (const Node& node : graph.nodes()) {
    for (Output input : node.inputs) ++uses[input];
  }
  for (const Fetch& fetch : graph.fetches()) ++uses[fetch.output];
  return uses;
}

bool IsPure(const Node& node) {
  const Op* op = FindOp(node.op);
  return op != nullptr && op->effect == Effect::kNone;
}

}  // namespace tfjob::graph
