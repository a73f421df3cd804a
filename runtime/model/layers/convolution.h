// Defines convolutions over images [height,width,channels] and rows [steps,channels] (kRank = 1).
// Conv and ConvTranspose also support volumes [depth,height,width,channels] (kRank = 3). Channels
// come last.
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layers/padding.h"

namespace tfjob::model::layers {

// Computes activation(convolution(x, kernel) + bias). Variables: kernel
// [size…,channels / groups,filters] and, if use_bias is set, bias [filters].
template <int kRank>
struct Conv {
  static constexpr std::string_view kClass = kRank == 1   ? "Conv1D"
                                             : kRank == 2 ? "Conv2D"
                                                          : "Conv3D";
  int64_t filters = 0;
  WindowArguments window = WindowArguments::Ones(kRank);
  int64_t groups = 1;
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

// Convolves each channel separately with depth_multiplier filters. Variables: kernel
// [size…,channels,depth_multiplier] and, if use_bias is set, bias [channels · depth_multiplier].
template <int kRank>
struct DepthwiseConv {
  static constexpr std::string_view kClass = kRank == 1 ? "DepthwiseConv1D" : "DepthwiseConv2D";
  WindowArguments window = WindowArguments::Ones(kRank);
  int64_t depth_multiplier = 1;
  ActivationKind activation = ActivationKind::kLinear;
  bool use_bias = true;
  Initializer depthwise_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules depthwise_rules = {}, bias_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes a depthwise convolution, followed by a convolution of size 1. Variables:
// depthwise_kernel [size…,channels,depth_multiplier], pointwise_kernel [1…,channels ·
// depth_multiplier,filters] and, if use_bias is set, bias [filters].
template <int kRank>
struct SeparableConv {
  static constexpr std::string_view kClass = kRank == 1 ? "SeparableConv1D" : "SeparableConv2D";
  int64_t filters = 0;
  WindowArguments window = WindowArguments::Ones(kRank);
  int64_t depth_multiplier = 1;
  ActivationKind activation = ActivationKind::kLinear;
  bool use_bias = true;
  Initializer depthwise_initializer = Initializer::GlorotUniform();
  Initializer pointwise_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules depthwise_rules = {}, pointwise_rules = {}, bias_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes a transposed convolution, that is, the gradient of a convolution with respect to its
// input: each element of the input contributes a multiple of the kernel to the output. Variables:
// kernel [size…,filters,channels] and, if use_bias is set, bias [filters].
template <int kRank>
struct ConvTranspose {
  static constexpr std::string_view kClass = kRank == 1   ? "Conv1DTranspose"
                                             : kRank == 2 ? "Conv2DTranspose"
                                                          : "Conv3DTranspose";
  int64_t filters = 0;
  WindowArguments window = WindowArguments::Ones(kRank);
  // The number of elements at the end of each axis of the output beyond the shortest output: one
  // number, or one per axis, below the strides. If empty, Keras' default applies.
  std::vector<int64_t> output_padding = {};
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

using Conv1D = Conv<1>;
using Conv2D = Conv<2>;
using Conv3D = Conv<3>;
using DepthwiseConv1D = DepthwiseConv<1>;
using DepthwiseConv2D = DepthwiseConv<2>;
using SeparableConv1D = SeparableConv<1>;
using SeparableConv2D = SeparableConv<2>;
using Conv1DTranspose = ConvTranspose<1>;
using Conv2DTranspose = ConvTranspose<2>;
using Conv3DTranspose = ConvTranspose<3>;

}  // namespace tfjob::model::layers
