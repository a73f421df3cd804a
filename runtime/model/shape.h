// Defines layers that only change shapes. They are in this folder, not in layers/, because an
// InputLayer may have unstated lengths (any_length.h).
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Represents an input of the model. The layer has no inputs; its value is fed.
struct InputLayer {
  static constexpr std::string_view kClass = "InputLayer";
  static constexpr bool kSupportsMasking = true;
  static constexpr bool kKeepsTypes = true;
  Shape shape;
  DType dtype = DType::kFloat32;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const { return call.x(); }
};

// Returns its input unchanged.
struct Identity {
  static constexpr std::string_view kClass = "Identity";
  static constexpr bool kAnyDType = true;
  static constexpr bool kSupportsMasking = true;

  void Arguments(ArgumentVisitor&) {}
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const { return call.x(); }
};

struct Flatten {
  static constexpr std::string_view kClass = "Flatten";
  static constexpr bool kAnyDType = true;

  void Arguments(ArgumentVisitor& visitor) { visitor.Only("data_format", "\"channels_last\""); }
  StatusOr<Shape> OutputShape(const Shape& in) const { return Shape({in.num_elements()}); }
  graph::Output Apply(const LayerCall& call) const;
};

struct Reshape {
  static constexpr std::string_view kClass = "Reshape";
  static constexpr bool kAnyDType = true;
  std::vector<int64_t> target_shape;  // one dimension may be -1

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Reorders the axes of each example. In `dims`, axes are counted from 1.
struct Permute {
  static constexpr std::string_view kClass = "Permute";
  static constexpr bool kAnyDType = true;
  std::vector<int64_t> dims;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Repeats each example of shape [c] n times. The result is [n,c].
struct RepeatVector {
  static constexpr std::string_view kClass = "RepeatVector";
  static constexpr bool kAnyDType = true;
  int64_t n = 1;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
