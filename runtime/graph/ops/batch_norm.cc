// Implements batch normalisation.
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// ---- inference

// Checks that x has a channel axis, and that the inputs from `first` to `last` have the shape
// [channels].
Status CheckChannels(const InferenceContext& context, const TensorType& x, size_t first,
                     size_t last) {
  if (!IsFloat(x.dtype)) return InvalidArgument("expected a float type");
  if (x.shape.rank() < 2 || x.shape.dim(-1) < 1)
    return InvalidArgument("expected at least two axes, and at least one channel");
  const TensorType channels{x.dtype, {x.shape.dim(-1)}};
  for (size_t i = first; i < last; ++i) {
    if (context.inputs[i] != channels)
      return InvalidArgument("expected ", channels.ToString(), " as input ", i);
  }
  return OkStatus();
}

Status CheckLike(const InferenceContext& context, const TensorType& x, size_t i) {
  if (i >= context.inputs.size() || context.inputs[i] == x) return OkStatus();
  return InvalidArgument("expected ", x.ToString(), " as input ", i);
}

Status CheckEpsilon(const InferenceContext& context) {
  if (context.attributes.Find<double>("epsilon") == nullptr)
    return InvalidArgument("expected the attribute epsilon, a number");
  return OkStatus();
}

InferResult InferBatchNorm(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  RETURN_IF_ERROR(CheckChannels(context, x, 1, 3));
  RETURN_IF_ERROR(CheckLike(context, x, 3));
  RETURN_IF_ERROR(CheckEpsilon(context));
  const TensorType channels = context.inputs[1];
  return std::vector{x, channels, channels};
}

InferResult InferBatchNormGrad(InferenceContext& context) {
  const TensorType& x = context.inputs[1];
  RETURN_IF_ERROR(CheckChannels(context, x, 2, 6));
  for (const size_t i : {0, 6, 7}) RETURN_IF_ERROR(CheckLike(context, x, i));
  RETURN_IF_ERROR(CheckEpsilon(context));
  const TensorType channels = context.inputs[2];
  std::vector<TensorType> outputs = {x, channels, channels};
  if (context.inputs.size() > 6) outputs.push_back(x);  // the side input's gradient
  return outputs;
}

// ---- gradients

// With n as the number of rows: d_x = (the gradient through y) + d_mean/n + d_variance·2·(x -
// mean)/n
Gradient BatchNormGradient(GradientContext& c) {
  Builder& b = c.b;
  const Output x = c.input(0), mean = c.output(1);
  Gradient found(3);
  if (c.dy().valid()) {
    const Output first =
        b.Add("FusedBatchNormGrad", {c.dy(), x, c.input(1), c.input(2), mean, c.output(2)},
              c.node.attributes);
    for (int i = 0; i < 3; ++i) found[static_cast<size_t>(i)] = {first.node, i};
  }
  const Shape shape = b.shape(x);  // a copy, because the graph grows
  const double rows = static_cast<double>(shape.num_elements() / shape.dim(-1));
  const auto contribute = [&](Output more) {
    found[0] = found[0].valid() ? Add(b, found[0], more) : more;
  };
  const auto share = [&](Output gradient, double factor) {
    return Mul(b, gradient, Scalar(b, b.dtype(x), factor / rows));
  };
  if (c.gradients[1].valid()) contribute(BroadcastTo(b, share(c.gradients[1], 1), shape));
  if (c.gradients[2].valid()) contribute(Mul(b, Sub(b, x, mean), share(c.gradients[2], 2)));
  return found;
}

}  // namespace

// Ops whose names end in "Ex" may include an activation. Only passes create these ops.
std::vector<Op> BatchNormOps() {
  return {
      {"FusedBatchNorm", 3, 3, InferBatchNorm, BatchNormGradient},
      {"FusedBatchNormGrad", 6, 6, InferBatchNormGrad, nullptr},
      {"FusedBatchNormEx", 3, 4, InferBatchNorm, nullptr},
      {"FusedBatchNormGradEx", 6, 8, InferBatchNormGrad, nullptr},
  };
}

BatchNorm FusedBatchNorm(Builder& b, Output x, Output gamma, Output beta, double epsilon) {
  const Output y = b.Add("FusedBatchNorm", {x, gamma, beta}, {{"epsilon", epsilon}});
  if (!y.valid()) return {};
  return {y, {y.node, 1}, {y.node, 2}};
}

}  // namespace tfjob::graph
