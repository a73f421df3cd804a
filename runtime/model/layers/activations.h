// Defines layers that apply an activation function.
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

struct Activation {
  static constexpr std::string_view kClass = "Activation";
  static constexpr bool kSupportsMasking = true;
  ActivationKind activation = ActivationKind::kLinear;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes min(x, max_value) for x > threshold, and negative_slope·(x - threshold) otherwise.
struct ReLU {
  static constexpr std::string_view kClass = "ReLU";
  static constexpr bool kSupportsMasking = true;
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

// Computes x for x > 0, and alpha·(exp(x) - 1) otherwise.
struct ELU {
  static constexpr std::string_view kClass = "ELU";
  static constexpr bool kSupportsMasking = true;
  double alpha = 1;

  void Arguments(ArgumentVisitor& visitor) { visitor.Number("alpha", alpha, {}); }
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const { return Elu(call.b, call.x(), alpha); }
};

// Computes x for x > 0, and negative_slope·x otherwise.
struct LeakyReLU {
  static constexpr std::string_view kClass = "LeakyReLU";
  static constexpr bool kSupportsMasking = true;
  double negative_slope = 0.3;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const {
    return LeakyRelu(call.b, call.x(), negative_slope);
  }
};

// Computes x for x > 0, and alpha·x otherwise. The variable alpha has the shape of an example, with
// size 1 for the shared axes.
struct PReLU {
  static constexpr std::string_view kClass = "PReLU";
  static constexpr bool kSupportsMasking = true;
  Initializer alpha_initializer = Initializer::Zeros();
  WeightRules alpha_rules = {};
  std::vector<int64_t> shared_axes;  // the batch is axis 0

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Applies softmax over the axes. A call may have a `mask` argument, which must have the input's
// rank; each of its dimensions must be 1 or equal to that of the input. Without this argument, the
// mask of the input is used, which must have the input's shape. The output is 0 where the mask is
// false (or at most 0.5, if the mask is numeric).
struct Softmax {
  static constexpr std::string_view kClass = "Softmax";
  static constexpr bool kSupportsMasking = true;
  std::vector<int64_t> axis = {-1};  // the batch is axis 0
  int inputs = 0, mask = kNoInput;

  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
