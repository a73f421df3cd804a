// Defines a dense layer whose product is specified by an equation.
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes activation(einsum(equation, inputs, kernel) + bias). The equation has one of the forms
// "ab,bc->ac", "...b,bc->...c" and "ab...,bc->ac...", with any letters. The batch axis is one of
// the letters, or included in the dots. Variables: kernel, whose axes are those of the equation's
// second operand; and, if `bias_axes` names axes of the output, bias, which has the sizes of these
// axes, and size 1 for all axes between and after them.
struct EinsumDense {
  static constexpr std::string_view kClass = "EinsumDense";
  std::string equation;
  // The sizes of the output, without the batch and the axes that the dots represent. -1 means the
  // size of the axis in the input.
  std::vector<int64_t> output_shape;
  ActivationKind activation = ActivationKind::kLinear;
  std::string bias_axes;  // empty: no bias
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules kernel_rules = {}, bias_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
