#include "runtime/graph/gradients.h"

#include <map>
#include <string>

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

  Output Of(Output value) const {
    const auto found = sums_.find(value);
    return found == sums_.end() ? Output() : found->second;
  }

 private:
  Builder& b_;
  std::map<Output, Output> sums_;
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
  GradientContext context{b, node, id, {}};
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

}  // namespace

std::vector<Output> Gradients(Builder& b, Output loss, std::span<const Output> wrt) {
  const std::vector<Output> none(wrt.size());
  if (!b.ok()) return none;
  if (Status arguments = CheckArguments(b, loss, wrt); !arguments.ok()) {
    b.Fail(std::move(arguments));
    return none;
  }
  NameScope scope(b, "gradients");
  const std::vector<bool> depends = DependsOn(b.graph(), loss.node, wrt);
  Accumulated gradients(b);
  gradients.Contribute(loss, Scalar(b, b.dtype(loss), 1));
  for (int id = loss.node; id >= 0 && b.ok(); --id) Differentiate(b, id, depends, gradients);
  if (!b.ok()) return none;
  std::vector<Output> found;
  for (Output value : wrt) {
    found.push_back(gradients.Of(value));
    if (!found.back().valid()) {
      b.Fail(InvalidArgument("the loss ", b.graph().NameOf(loss), " does not depend on ",
                             b.graph().NameOf(value),
                             " through differentiable ops; remove it from the trained variables"));
      return none;
    }
  }
  return found;
}

}  // namespace tfjob::graph
