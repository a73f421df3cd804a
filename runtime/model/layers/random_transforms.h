// Defines layers that move the pixels of images [height,width,channels] at random in training, and
// do nothing otherwise. The random numbers differ from image to image.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// How the moved image is interpolated, and how it is continued beyond its borders: "reflect"
// mirrors it (dcba|abcd|dcba), "wrap" repeats it, "nearest" repeats the pixels at the border, and
// "constant" is fill_value.
struct TransformOptions {
  enum class FillMode { kReflect, kWrap, kConstant, kNearest };
  enum class Interpolation { kBilinear, kNearest };
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;  // with kConstant

  void Arguments(ArgumentVisitor& visitor);
};

// Moves an image down by a random part of its height, and right by a random part of its width.
struct RandomTranslation {
  static constexpr std::string_view kClass = "RandomTranslation";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> height_factor, width_factor;
  TransformOptions options = {};
  std::optional<int64_t> seed = {};  // only stored, like the seeds of the layers below

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Rotates an image around its centre, counterclockwise, by a random part of a full turn.
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

// Zooms an image around its centre: shows a part whose height is (1 + h) times the image's, and
// whose width is (1 + w) times the image's, where h and w are random numbers. Negative numbers
// therefore enlarge the image. If width_factor is empty, w equals h.
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
