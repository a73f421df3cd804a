// Defines a dense layer whose product an equation describes.
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes activation(einsum(equation, inputs, kernel) + bias). The equation has one of the forms
// "ab,bc->ac", "...b,bc->...c" and "ab...,bc->ac...", with any letters; the batch is among the
// letters or the dots. Variables: kernel, which has the axes of the equation's second operand; and,
// if `bias_axes` names axes of the output, bias, which has the sizes of these axes, and size 1 for
// the axes between and after them.
struct EinsumDense {
  static constexpr std::string_view kClass = "EinsumDense";
  std::string equation;
  // The output's sizes, without the batch and the axes that the dots stand for. -1 stands for the
  // input's size.
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
