#include "runtime/graph/backpropagate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/graph/family.h"
#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/recompute.h"

namespace tfjob::graph {
namespace {

// Accumulates, for each value, the gradients that the ops using that value contribute.
class Accumulated {
 public:
  explicit Accumulated(Builder& b) : b_(b) {}

  void Contribute(Output value, Output gradient) {
    ENFORCE(b_.type(value) == b_.type(gradient), "a gradient has the type of its value");
    Output& sum = sums_[value];
    sum = sum.valid() ? Add(b_, sum, gradient) : gradient;
  }
  void Contribute(Output value, const IndexedSlices& slices) { slices_[value].push_back(slices); }

  // Returns the dense sum, or an invalid Output if there were no contributions.
  Output Of(Output value) {
    if (const auto slices = slices_.find(value); slices != slices_.end()) {
      const auto [indices, values] = Joined(slices->second);
      slices_.erase(slices);
      Contribute(value, UnsortedSegmentSum(b_, values, indices, b_.shape(value).dim(0)));
    }
    const auto found = sums_.find(value);
    return found == sums_.end() ? Output() : found->second;
  }

  GradientOrRows RowsOf(Output value) {
    const auto slices = slices_.find(value);
    if (slices == slices_.end() || sums_.contains(value)) return {.dense = Of(value), .rows = {}};
    const auto [indices, values] = Joined(slices->second);
    return {.dense = {}, .rows = DeduplicateIndexedSlices(b_, indices, values)};
  }

 private:
  // Returns the concatenated indices and values of all slices.
  std::pair<Output, Output> Joined(const std::vector<IndexedSlices>& slices) {
    if (slices.size() == 1) return {slices[0].indices, slices[0].values};
    std::vector<Output> indices, values;
    for (const IndexedSlices& part : slices) {
      indices.push_back(Cast(b_, part.indices, DType::kInt64));
      values.push_back(part.values);
    }
    return {Concat(b_, std::move(indices), 0), Concat(b_, std::move(values), 0)};
  }

  Builder& b_;
  std::map<Output, Output> sums_;
  std::map<Output, std::vector<IndexedSlices>> slices_;
};

// Returns one flag per node, up to and including node `last`: whether the node depends on any of
// `wrt`.
std::vector<bool> DependsOn(const Graph& graph, int last, std::span<const Output> wrt) {
  std::vector<bool> depends(static_cast<size_t>(last) + 1, false);
  for (Output output : wrt) {
    if (output.node <= last) depends[static_cast<size_t>(output.node)] = true;
  }
  for (int id = 0; id <= last; ++id) {
    for (Output input : graph.node(id).inputs) {
      if (depends[static_cast<size_t>(input.node)]) depends[static_cast<size_t>(id)] = true;
    }
  }
  return depends;
}

bool DependsThroughInputs(const Node& node, const std::vector<bool>& depends) {
  for (Output input : node.inputs) {
    if (depends[static_cast<size_t>(input.node)]) return true;
  }
  return false;
}

// Appends the nodes that compute the gradients of the inputs of node `id`. Adds the gradients to
// `gradients`, but only for inputs that depend on `wrt`.
void Differentiate(Builder& b, int id, const std::vector<bool>& depends, Recomputation& recomputed,
                   Accumulated& gradients) {
  const Node node = b.graph().node(id);
  if (!DependsThroughInputs(node, depends)) return;
  std::vector<Output> of_outputs;
  bool any = false;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
    of_outputs.push_back(gradients.Of({id, i}));
    any = any || of_outputs.back().valid();
  }
  if (!any) return;
  const Recomputation::Source source = recomputed.SourceOf(id);
  if (!b.ok()) return;
  GradientContext context{b, source.node, source.id, std::move(of_outputs), {}};
  for (Output input : node.inputs)
    context.wanted.push_back(depends[static_cast<size_t>(input.node)] && IsFloat(b.dtype(input)));
  const Op* op = FindOp(node.op);
  ENFORCE(op != nullptr, "a node's op is in the table");
  if (op->gradient == nullptr) {
    b.Fail(Unimplemented("node ", node.name, ": op ", node.op, " has no gradient"));
    return;
  }
  const std::vector<Output> inputs = op->gradient(context);
  if (!b.ok()) return;
  ENFORCE(inputs.size() == node.inputs.size(), "one gradient per input");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Output input = node.inputs[i];
    if (inputs[i].valid() && context.wanted[i]) gradients.Contribute(input, inputs[i]);
  }
  for (const IndexedSlices& slices : context.slices) {
    const Output input = node.inputs[static_cast<size_t>(slices.input)];
    if (context.wanted[static_cast<size_t>(slices.input)]) gradients.Contribute(input, slices);
  }
}

}  // namespace

std::vector<GradientOrRows> Backpropagate(Builder& b, std::span<const Output> values,
                                          std::span<const Output> gradients,
                                          std::span<const Output> wrt, bool rows) {
  int last = -1;
  for (Output value : values) last = std::max(last, value.node);
  const std::vector<bool> depends = DependsOn(b.graph(), last, wrt);
  Accumulated accumulated(b);
  Recomputation recomputed(b, last);
  for (size_t i = 0; i < values.size(); ++i) accumulated.Contribute(values[i], gradients[i]);
  for (int id = last; id >= 0 && b.ok(); --id)
    Differentiate(b, id, depends, recomputed, accumulated);
  std::vector<GradientOrRows> found;
  for (Output value : wrt) {
    if (!b.ok()) return std::vector<GradientOrRows>(wrt.size());
    found.push_back(rows ? accumulated.RowsOf(value)
                         : GradientOrRows{.dense = accumulated.Of(value), .rows = {}});
  }
  return found;
}

}  // namespace tfjob::graph
