// Defines fully connected layers.
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes activation(x·kernel + bias) over the last axis of x. Variables: kernel [in,units] and,
// if use_bias is set, bias [units].
struct Dense {
  static constexpr std::string_view kClass = "Dense";
  static constexpr bool kSupportsMasking = true;
  int64_t units = 0;
  ActivationKind activation = ActivationKind::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules kernel_rules = {}, bias_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
