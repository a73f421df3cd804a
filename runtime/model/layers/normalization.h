// Defines layers that normalise values.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes gamma·(x - mean) / √(variance + epsilon) + beta, with one mean and one variance per
// element of the axis, over all other axes. In training, uses the statistics of the batch, and
// updates the moving statistics m with the batch's statistics s: m ← momentum·m + (1 - momentum)·s.
// Otherwise, uses the moving statistics. Ignores masked steps. Variables, each with the size of the
// axis: gamma (if scale), beta (if center), moving_mean, moving_variance.
struct BatchNormalization {
  static constexpr std::string_view kClass = "BatchNormalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  static constexpr bool kTakesMask = true;
  int64_t axis = -1;  // the batch is axis 0
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  // In training, uses the statistics of the whole batch, although several devices or tasks each
  // compute a part of it.
  bool synchronized = false;
  Initializer beta_initializer = Initializer::Zeros();
  Initializer gamma_initializer = Initializer::Ones();
  WeightRules beta_rules = {}, gamma_rules = {};
  Initializer moving_mean_initializer = Initializer::Zeros();
  Initializer moving_variance_initializer = Initializer::Ones();

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(LayerCall& call) const;
};

// Computes gamma·(x - mean) / √(variance + epsilon) + beta, with the mean and variance over the
// axes, separately for each example. Variables, whose shape consists of the sizes of the axes:
// gamma (if scale), beta (if center).
struct LayerNormalization {
  static constexpr std::string_view kClass = "LayerNormalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  std::vector<int64_t> axis = {-1};  // the batch is axis 0
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = Initializer::Zeros();
  Initializer gamma_initializer = Initializer::Ones();
  WeightRules beta_rules = {}, gamma_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes x·scale + offset.
struct Rescaling {
  static constexpr std::string_view kClass = "Rescaling";
  static constexpr bool kSupportsMasking = true;
  double scale = 1;
  double offset = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
