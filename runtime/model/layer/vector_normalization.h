// Defines layers that divide vectors by their length.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Divides by the Euclidean norm over the axes, or by 1e-12 if the norm is smaller.
struct UnitNormalization {
  static constexpr std::string_view kClass = "UnitNormalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  std::vector<int64_t> axis = {-1};  // the batch is axis 0

  void Arguments(ArgumentVisitor& visitor) { visitor.Axes("axis", axis); }
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes scale·x / √(mean of x² over the axes + epsilon) (Zhang and Sennrich, "Root Mean Square
// Layer Normalization", 2019). Variable: scale, whose shape consists of the sizes of the axes.
struct RMSNormalization {
  static constexpr std::string_view kClass = "RMSNormalization";
  static constexpr bool kComputesInFloat32 = true;
  std::vector<int64_t> axis = {-1};  // the batch is axis 0
  double epsilon = 1e-6;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Returns x divided by its Euclidean norm over the axes, or by epsilon if the norm is smaller.
graph::Output Normalized(graph::Builder& b, graph::Output x, const std::vector<int64_t>& axes,
                         double epsilon);

}  // namespace tfjob::model::layers
