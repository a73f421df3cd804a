#include "runtime/graph/gradients.h"

#include <map>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// Sums the gradient of each value as its contributions arrive.
class Accumulated {
 public:
  explicit Accumulated(Builder& b) : b_(b) {}

  void Contribute(Output value, Output gradient) {
    ENFORCE(b_.type(value) == b_.type(gradient), "a gradient has the type of its value");
    Output& sum = sums_[value];
    sum = sum.valid() ? Add(b_, sum, gradient) : gradient;
  }
  void Contribute(Output value, const IndexedSlices& slices) { slices_[value].push_back(slices); }

  // Returns the dense sum, or an invalid Output if nothing was contributed.
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
  // Returns the indices and the values of all slices, one after the other.
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

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

// Returns, for each node up to the loss, whether it depends on one of `wrt`.
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

// Appends the nodes for the gradient of node `id`, and adds the result to the gradients of those
// inputs that depend on `wrt`.
void Differentiate(Builder& b, int id, const std::vector<bool>& depends, Accumulated& gradients) {
  const Node node = b.graph().node(id);
  if (!DependsThroughInputs(node, depends)) return;
  GradientContext context{b, node, id, {}, {}};
  bool any = false;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
    context.gradients.push_back(gradients.Of({id, i}));
    any = any || context.gradients.back().valid();
  }
  if (!any) return;
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
    if (inputs[i].valid() && depends[static_cast<size_t>(input.node)] && IsFloat(b.dtype(input))) {
      gradients.Contribute(input, inputs[i]);
    }
  }
  for (const IndexedSlices& slices : context.slices) {
    const Output input = context.input(slices.input);
    if (depends[static_cast<size_t>(input.node)] && IsFloat(b.dtype(input)))
      gradients.Contribute(input, slices);
  }
}

Status CheckArguments(const Builder& b, Output loss, std::span<const Output> wrt) {
  if (!loss.valid()) return InvalidArgument("gradients of an invalid loss");
  if (b.shape(loss).rank() != 0 || !IsFloat(b.dtype(loss))) {
    return InvalidArgument("gradients of ", b.graph().NameOf(loss),
                           ": expected a float scalar, got ", b.type(loss).ToString());
  }
  for (Output output : wrt) {
    if (!output.valid()) return InvalidArgument("gradients for an invalid value");
  }
  return OkStatus();
}

// Appends the gradients of all values up to the loss. Returns false if that fails.
bool DifferentiateAll(Builder& b, Output loss, std::span<const Output> wrt,
                      Accumulated& gradients) {
  const std::vector<bool> depends = DependsOn(b.graph(), loss.node, wrt);
  gradients.Contribute(loss, Scalar(b, b.dtype(loss), 1));
  for (int id = loss.node; id >= 0 && b.ok(); --id) Differentiate(b, id, depends, gradients);
  return b.ok();
}

// Returns the gradients of `wrt`, by rows only if `rows` is set. Returns default values after an
// error.
std::vector<GradientOrRows> GradientsOf(Builder& b, Output loss, std::span<const Output> wrt,
                                        bool rows) {
  const std::vector<GradientOrRows> none(wrt.size());
  if (!b.ok()) return none;
  if (Status arguments = CheckArguments(b, loss, wrt); !arguments.ok()) {
    b.Fail(std::move(arguments));
    return none;
  }
  NameScope scope(b, "gradients");
  Accumulated gradients(b);
  if (!DifferentiateAll(b, loss, wrt, gradients)) return none;
  std::vector<GradientOrRows> found;
  for (Output value : wrt) {
    found.push_back(rows ? gradients.RowsOf(value)
                         : GradientOrRows{.dense = gradients.Of(value), .rows = {}});
    if (b.ok() && !found.back().values().valid()) {
      b.Fail(InvalidArgument("the loss ", b.graph().NameOf(loss), " does not depend on ",
                             b.graph().NameOf(value),
                             " through differentiable ops; remove it from the trained variables"));
    }
    if (!b.ok()) return none;
  }
  return found;
}

}  // namespace

std::vector<Output> Gradients(Builder& b, Output loss, std::span<const Output> wrt) {
  std::vector<Output> dense;
  for (const GradientOrRows& gradient : GradientsOf(b, loss, wrt, /*rows=*/false))
    dense.push_back(gradient.dense);
  return dense;
}

std::vector<GradientOrRows> GradientsOrRows(Builder& b, Output loss, std::span<const Output> wrt) {
  return GradientsOf(b, loss, wrt, /*rows=*/true);
}

}  // namespace tfjob::graph
