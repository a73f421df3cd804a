#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/scan.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

// Sets the minimum number of steps for which the pass pays off. A product of few rows is about a
// third slower if an operand is transposed; with fewer steps, the Transpose costs more than it
// saves.
constexpr int64_t kLeastSteps = 8;

bool IsTransposedOperand(const Node& node, size_t input) {
  return node.op == "MatMul" && input == 1 && node.attributes.Get("transpose_b", false);
}

// Returns the indices of the invariant matrices that the body uses only as transposed second
// operands of products.
std::set<int> TransposedInvariants(const Graph& body, int invariants) {
  std::map<int, int> numbers;  // keyed by node
  for (int id = 0; id < static_cast<int>(body.nodes().size()); ++id) {
    const Node& node = body.node(id);
    if (node.op != "Placeholder" || node.outputs[0].shape.rank() != 2) continue;
    for (int i = 0; i < invariants; ++i) {
      if (node.name == InvariantName(i)) numbers[id] = i;
    }
  }
  std::set<int> read, otherwise;
  for (const Node& node : body.nodes()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto found = numbers.find(node.inputs[i].node);
      if (found == numbers.end()) continue;
      (IsTransposedOperand(node, i) ? read : otherwise).insert(found->second);
    }
  }
  for (const Fetch& fetch : body.fetches()) {
    const auto found = numbers.find(fetch.output.node);
    if (found != numbers.end()) otherwise.insert(found->second);
  }
  for (int invariant : otherwise) read.erase(invariant);
  return read;
}

Attributes Without(const Attributes& attributes, std::string_view name) {
  Attributes others;
  for (const auto& [key, value] : attributes.values()) {
    if (key != name) others.Set(key, value);
  }
  return others;
}

// Returns a copy of the body that expects these invariants to be transposed already.
Graph WithTransposed(const Graph& body, const std::set<int>& invariants) {
  std::set<std::string> names;
  for (int invariant : invariants) names.insert(InvariantName(invariant));
  Graph changed;
  for (const Node& old : body.nodes()) {
    Node node = old;
    if (node.op == "Placeholder" && names.contains(node.name)) {
      Shape& shape = node.outputs[0].shape;
      shape = {shape.dim(1), shape.dim(0)};
      node.attributes.Set("shape", shape);
    }
    if (node.op == "MatMul" && names.contains(body.node(node.inputs[1]).name))
      node.attributes = Without(node.attributes, "transpose_b");
    changed.Append(std::move(node));
  }
  for (const Fetch& fetch : body.fetches()) changed.AddFetch(fetch);
  return changed;
}

}  // namespace

Graph HoistTranspose(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const StatusOr<ScanForm> form =
        node.op == "Scan" ? ScanFormOf(node.attributes) : StatusOr<ScanForm>(ScanForm());
    const int before = form.ok() ? form->states + form->sequences : 0;
    std::set<int> transposed;
    if (form.ok() && form->body != nullptr && form->steps >= kLeastSteps)
      transposed = TransposedInvariants(*form->body, static_cast<int>(node.inputs.size()) - before);
    if (transposed.empty()) {
      rewriter.Copy(id);
      continue;
    }
    std::vector<Output> inputs = rewriter.Now(node.inputs);
    for (int invariant : transposed) {
      Output& input = inputs[static_cast<size_t>(before + invariant)];
      input = rewriter.Append(id, "Transpose", {input}, {{"perm", std::vector<int64_t>{1, 0}}},
                              StrCat("/transposed_", invariant));
    }
    Attributes attributes = node.attributes;
    attributes.Set("body", Subgraph::Of(WithTransposed(*form->body, transposed)));
    const Output scan = rewriter.Append(id, "Scan", std::move(inputs), std::move(attributes));
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      rewriter.Replace({id, i}, {scan.node, i});
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
