// Defines normalisation with the moments of groups of channels (Wu and He, "Group Normalization",
// 2018).
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes gamma·(x - mean) / √(variance + epsilon) + beta, where mean and variance are computed
// per example and group. A group consists of consecutive elements along the axis, together with all
// elements along the other axes. groups = -1 means one group per element. Variables, each with the
// size of the axis: gamma (if scale), beta (if center).
struct GroupNormalization {
  static constexpr std::string_view kClass = "GroupNormalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  int64_t groups = 32;
  int64_t axis = -1;  // the batch is axis 0
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

}  // namespace tfjob::model::layers
