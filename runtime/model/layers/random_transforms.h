// Defines layers that randomly move the pixels of images [height,width,channels] in training, and
// do nothing otherwise. Each image is transformed with different random numbers.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Specifies how the moved image is interpolated, and how it continues beyond its borders: "reflect"
// mirrors the image (dcba|abcd|dcba), "wrap" repeats it, "nearest" repeats the pixels at the
// border, and "constant" uses fill_value.
struct TransformOptions {
  enum class FillMode { kReflect, kWrap, kConstant, kNearest };
  enum class Interpolation { kBilinear, kNearest };
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;  // for kConstant

  void Arguments(ArgumentVisitor& visitor);
};

// Moves an image down by a random fraction of its height, and right by a random fraction of its
// width.
struct RandomTranslation {
  static constexpr std::string_view kClass = "RandomTranslation";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> height_factor, width_factor;
  TransformOptions options = {};
  std::optional<int64_t> seed = {};  // stored but not used, like the seeds below

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Rotates an image counterclockwise around its centre, by a random fraction of a full turn.
struct RandomRotation {
  static constexpr std::string_view kClass = "RandomRotation";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor;
  TransformOptions options = {};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Zooms an image around its centre. The result shows a part whose height is (1 + h) times the
// height of the image, and whose width is (1 + w) times the width, where h and w are random
// numbers. Negative numbers therefore enlarge the image. If width_factor is empty, w equals h.
struct RandomZoom {
  static constexpr std::string_view kClass = "RandomZoom";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> height_factor, width_factor;
  TransformOptions options = {};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Shifts row i by i·x and column j by j·y, where x and y are random numbers with the same random
// sign.
struct RandomShear {
  static constexpr std::string_view kClass = "RandomShear";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> x_factor = {0}, y_factor = {0};
  TransformOptions options = {};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
