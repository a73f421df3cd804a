#include "runtime/model/layers/normalization.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"
#include "runtime/model/layer/mask.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr NumberRule kNotBelowZero = {.least = 0, .expected = "a number of at least 0"};

// Reshapes a variable to `shape`, which has the rank of x and size 1 for all axes that the variable
// lacks.
Output Along(Builder& b, Output value, const Shape& shape) {
  return b.shape(value) == shape ? value : graph::Reshape(b, value, shape);
}

struct Moments {
  Output mean, variance;  // have the rank of x, with size 1 for reduced axes
};

Moments MomentsOf(Builder& b, Output x, const std::vector<int64_t>& axes) {
  const Output mean = Mean(b, x, axes, true);
  return {mean, Mean(b, Square(b, Sub(b, x, mean)), axes, true)};
}

// Returns the moments over the unmasked steps, or over all steps if there is no mask. If there is a
// mask, divides, like Keras, by the number of unmasked elements plus 1e-7.
Moments MomentsOf(Builder& b, Output x, Output mask, const std::vector<int64_t>& axes) {
  if (!mask.valid()) return MomentsOf(b, x, axes);
  constexpr double kEpsilon = 1e-7;
  const DType dtype = b.dtype(x);
  const Output weights = BroadcastTo(b, Cast(b, AlongSteps(b, mask, x), dtype), b.shape(x));
  const Output total = graph::Add(b, Sum(b, weights, axes, true), Scalar(b, dtype, kEpsilon));
  const Output mean = Div(b, Sum(b, Masked(b, mask, x), axes, true), total);
  const Output squares = Square(b, Masked(b, mask, Sub(b, x, mean)));
  return {mean, Div(b, Sum(b, squares, axes, true), total)};
}

// Returns the moments over the whole batch, which is split across the replicas. Subtracts `shift`,
// which is equal on all replicas and should be close to the mean, before squaring: otherwise, the
// variance, E[x²] - E[x]², loses precision when it is much smaller than the squared mean.
Moments MomentsOfReplicas(Builder& b, Output x, Output mask, Output shift,
                          const std::vector<int64_t>& axes) {
  const Shape along = b.shape(shift);
  const int64_t channels = along.num_elements();
  const DType dtype = b.dtype(x);
  Output shifted = Sub(b, x, shift);
  if (mask.valid()) shifted = Masked(b, mask, shifted);
  std::vector<Output> means = {Mean(b, shifted, axes, true),
                               Mean(b, Square(b, shifted), axes, true)};
  if (mask.valid()) {
    const Output weights = Cast(b, AlongSteps(b, mask, x), dtype);
    means.push_back(Mean(b, BroadcastTo(b, weights, b.shape(x)), axes, true));
  }
  std::vector<Output> rows;
  for (const Output mean : means) rows.push_back(graph::Reshape(b, mean, {channels}));
  const Output all = AllReduceMean(b, graph::Concat(b, std::move(rows), 0));
  if (!b.ok()) return {};
  for (size_t i = 0; i < means.size(); ++i) {
    const Output row = graph::Slice(b, all, {static_cast<int64_t>(i) * channels}, {channels});
    means[i] = graph::Reshape(b, row, along);
  }
  Output mean = means[0], square = means[1], origin = shift;
  if (mask.valid()) {
    // If no step is unmasked, the mean and the variance are 0, as in Keras.
    const Output unmasked = graph::Maximum(b, means[2], Scalar(b, dtype, 1e-7));
    mean = Div(b, mean, unmasked);
    square = Div(b, square, unmasked);
    origin = Mul(b, shift, Div(b, means[2], unmasked));
  }
  const Output variance = graph::Maximum(b, Sub(b, square, Square(b, mean)), Scalar(b, dtype, 0));
  return {graph::Add(b, mean, origin), variance};
}

// Returns (x - mean)·gamma / √(variance + epsilon) + beta. gamma and beta may be invalid.
Output Normalized(Builder& b, Output x, const Moments& moments, double epsilon, Output gamma,
                  Output beta) {
  Output factor = Rsqrt(b, graph::Add(b, moments.variance, Scalar(b, b.dtype(x), epsilon)));
  if (gamma.valid()) factor = Mul(b, factor, gamma);
  const Output y = Mul(b, Sub(b, x, moments.mean), factor);
  return beta.valid() ? graph::Add(b, y, beta) : y;
}

void CenterAndScale(ArgumentVisitor& visitor, bool& center, bool& scale) {
  visitor.Flag("center", center);
  visitor.Flag("scale", scale);
}

// Updates the moving statistics, the last two variables, with the statistics of the batch.
void Follow(const BatchNormalization& layer, LayerCall& call, const Moments& batch) {
  Builder& b = call.b;
  const size_t mean = call.variables.size() - 2;
  const auto follow = [&](size_t i, Output now) {
    const Output old = call.variables[i];
    const Output value = graph::Reshape(b, now, b.shape(old));
    const Output rate = Scalar(b, b.dtype(old), 1 - layer.momentum);
    call.assignments.push_back({i, graph::Add(b, old, Mul(b, Sub(b, value, old), rate))});
  };
  follow(mean, batch.mean);
  follow(mean + 1, batch.variance);
}

// Normalises along the last axis with the statistics of the batch, in a fused op.
Output NormalizeFused(const BatchNormalization& layer, LayerCall& call) {
  Builder& b = call.b;
  const Output moving = call.variables.back();
  const auto or_else = [&](bool present, size_t i, double value) {
    return present ? call.variables[i] : Fill(b, b.dtype(moving), b.shape(moving), value);
  };
  const graph::BatchNorm norm =
      FusedBatchNorm(b, call.x(), or_else(layer.scale, 0, 1),
                     or_else(layer.center, layer.scale ? 1 : 0, 0), layer.epsilon);
  if (norm.y.valid()) Follow(layer, call, {norm.mean, norm.variance});
  return norm.y;
}

}  // namespace

void BatchNormalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Axis("axis", axis);
  visitor.Number("momentum", momentum, {.least = 0, .most = 1, .expected = "a number in [0, 1]"});
  visitor.Number("epsilon", epsilon, kNotBelowZero);
  CenterAndScale(visitor, center, scale);
  visitor.Flag("synchronized", synchronized);
  visitor.Initializer("beta_initializer", beta_initializer);
  visitor.Initializer("gamma_initializer", gamma_initializer);
  visitor.Initializer("moving_mean_initializer", moving_mean_initializer);
  visitor.Initializer("moving_variance_initializer", moving_variance_initializer);
  visitor.Rules("beta", beta_rules);
  visitor.Rules("gamma", gamma_rules);
  // Some versions of Keras write arguments that they no longer use, or that only affect the speed.
  visitor.Retired("renorm", "false");
  for (const char* name : {"renorm_clipping", "virtual_batch_size", "adjustment"})
    visitor.Retired(name, "null");
  for (const char* name : {"renorm_momentum", "fused"}) visitor.Ignored(name);
}

StatusOr<Shape> BatchNormalization::OutputShape(const Shape& in) const {
  if (ExampleAxis(axis, in) < 0) return NoSuchAxis(axis, in);
  return in;
}

std::vector<VariableSpec> BatchNormalization::Variables(const Shape& in) const {
  const Shape shape({in.dim(ExampleAxis(axis, in))});
  std::vector<VariableSpec> variables;
  if (scale)
    variables.push_back({"gamma", DType::kFloat32, shape, gamma_initializer, true, gamma_rules});
  if (center)
    variables.push_back({"beta", DType::kFloat32, shape, beta_initializer, true, beta_rules});
  variables.push_back({.name = "moving_mean",
                       .shape = shape,
                       .initializer = moving_mean_initializer,
                       .trainable = false,
                       .assigned = true});
  variables.push_back({.name = "moving_variance",
                       .shape = shape,
                       .initializer = moving_variance_initializer,
                       .trainable = false,
                       .assigned = true});
  return variables;
}

Output BatchNormalization::Apply(LayerCall& call) const {
  Builder& b = call.b;
  const Output x = call.x();
  const Shape in = call.ExampleShape();
  const int kept = ExampleAxis(axis, in) + 1;
  std::vector<int64_t> others;
  std::vector<int64_t> dims(static_cast<size_t>(in.rank()) + 1, 1);
  dims[static_cast<size_t>(kept)] = in.dim(kept - 1);
  for (int d = 0; d <= in.rank(); ++d) {
    if (d != kept) others.push_back(d);
  }
  const Shape along(dims);
  const auto variable = [&](size_t i) { return Along(b, call.variables[i], along); };
  const size_t mean = call.variables.size() - 2, variance = mean + 1;
  // As in Keras, a frozen layer uses its moving statistics even in training.
  const bool learns = call.training && call.trainable;
  if (learns && !synchronized && !call.mask().valid() && kept == in.rank())
    return NormalizeFused(*this, call);
  Moments moments{variable(mean), variable(variance)};
  if (learns && synchronized) {
    moments = MomentsOfReplicas(b, x, call.mask(), moments.mean, others);
  } else if (learns) {
    moments = MomentsOf(b, x, call.mask(), others);
  }
  if (learns) Follow(*this, call, moments);
  return Normalized(b, x, moments, epsilon, scale ? variable(0) : Output(),
                    center ? variable(scale ? 1 : 0) : Output());
}

void LayerNormalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axis", axis);
  visitor.Number("epsilon", epsilon, kNotBelowZero);
  CenterAndScale(visitor, center, scale);
  visitor.Only("rms_scaling", "false");
  visitor.Initializer("beta_initializer", beta_initializer);
  visitor.Initializer("gamma_initializer", gamma_initializer);
  visitor.Rules("beta", beta_rules);
  visitor.Rules("gamma", gamma_rules);
}

StatusOr<Shape> LayerNormalization::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(AxesOfBatch(axis, in).status());
  return in;
}

std::vector<VariableSpec> LayerNormalization::Variables(const Shape& in) const {
  std::vector<int64_t> dims;
  for (int64_t a : axis) dims.push_back(in.dim(ExampleAxis(a, in)));
  std::vector<VariableSpec> variables;
  if (scale)
    variables.push_back(
        {"gamma", DType::kFloat32, Shape(dims), gamma_initializer, true, gamma_rules});
  if (center)
    variables.push_back({"beta", DType::kFloat32, Shape(dims), beta_initializer, true, beta_rules});
  return variables;
}

Output LayerNormalization::Apply(const LayerCall& call) const {
  const Shape in = call.ExampleShape();
  const std::vector<int64_t> axes = *AxesOfBatch(axis, in);
  std::vector<int64_t> dims(static_cast<size_t>(in.rank()) + 1, 1);
  for (int64_t d : axes) dims[static_cast<size_t>(d)] = in.dim(static_cast<int>(d) - 1);
  const Shape along(dims);
  const auto variable = [&](size_t i) { return Along(call.b, call.variables[i], along); };
  return Normalized(call.b, call.x(), MomentsOf(call.b, call.x(), axes), epsilon,
                    scale ? variable(0) : Output(), center ? variable(scale ? 1 : 0) : Output());
}

void Rescaling::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("scale", scale, {});
  visitor.Number("offset", offset, {});
}

Output Rescaling::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const DType dtype = b.dtype(call.x());
  return graph::Add(b, Mul(b, call.x(), Scalar(b, dtype, scale)), Scalar(b, dtype, offset));
}

}  // namespace tfjob::model::layers
