// Defines layers that apply an activation function.
#pragma once

#include "runtime/model/activation.h"
#include "runtime/model/layer.h"

namespace tfjob::model::layers {

struct Activation {
  static constexpr std::string_view kClass = "Activation";
  ActivationKind activation = ActivationKind::kLinear;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes x for x > threshold, at most max_value, and negative_slope·(x - threshold) otherwise.
struct ReLU {
  static constexpr std::string_view kClass = "ReLU";
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

// Applies softmax over the last axis.
struct Softmax {
  static constexpr std::string_view kClass = "Softmax";

  void Arguments(ArgumentVisitor& visitor) { visitor.Only("axis", "-1"); }
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
