// Defines layers that change images [height,width,channels] at random in training, and do nothing
// otherwise. The random numbers differ from image to image.
#pragma once

#include <array>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Reverses the columns, the rows or both of each image with probability 1/2.
struct RandomFlip {
  static constexpr std::string_view kClass = "RandomFlip";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  enum class Mode { kHorizontal, kVertical, kBoth };
  Mode mode = Mode::kBoth;
  std::optional<int64_t> seed = {};  // only stored, like the seeds of the layers below

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Adds one number to all values of an image: a random number between factor[0] and factor[1],
// multiplied by the width of the value range. The results are clipped to the value range, as in
// RandomContrast.
struct RandomBrightness {
  static constexpr std::string_view kClass = "RandomBrightness";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor, value_range = {0, 255};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Multiplies each value's distance from the mean of its channel by a random number between
// 1 - factor[0] and 1 + factor[1].
struct RandomContrast {
  static constexpr std::string_view kClass = "RandomContrast";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor, value_range = {0, 255};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each value x of an image with value_range[1] - x, with a probability that is drawn
// between the factors.
struct RandomInvert {
  static constexpr std::string_view kClass = "RandomInvert";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor = {1}, value_range = {0, 255};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces all channels of an image with its brightness, with probability `factor`.
struct RandomGrayscale {
  static constexpr std::string_view kClass = "RandomGrayscale";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  double factor = 0.5;
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
