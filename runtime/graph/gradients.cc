#include "runtime/graph/gradients.h"

#include <string>
#include <utility>

#include "runtime/graph/backpropagate.h"
#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

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

// Returns the gradients of `wrt`, or default values after an error. A gradient is given by rows if
// `rows` is set and the conditions of GradientsOrRows are met; otherwise, it is dense.
std::vector<GradientOrRows> GradientsOf(Builder& b, Output loss, std::span<const Output> wrt,
                                        bool rows) {
  const std::vector<GradientOrRows> none(wrt.size());
  if (!b.ok()) return none;
  if (Status arguments = CheckArguments(b, loss, wrt); !arguments.ok()) {
    b.Fail(std::move(arguments));
    return none;
  }
  const NameScope scope(b, "gradients");
  const Output one = Scalar(b, b.dtype(loss), 1);
  std::vector<GradientOrRows> found =
      Backpropagate(b, std::span(&loss, 1), std::span(&one, 1), wrt, rows);
  for (size_t i = 0; i < wrt.size() && b.ok(); ++i) {
    if (found[i].values().valid()) continue;
    b.Fail(InvalidArgument("the loss ", b.graph().NameOf(loss), " does not depend on ",
                           b.graph().NameOf(wrt[i]),
                           " through differentiable ops; remove it from the trained variables"));
  }
  if (!b.ok()) return none;
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
