// Defines layers that randomly change images [height,width,channels] in training, and do nothing
// otherwise. Each image is changed with different random numbers.
#pragma once

#include <array>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// With probability 1/2, reverses the columns of an image, its rows, or both, depending on `mode`.
struct RandomFlip {
  static constexpr std::string_view kClass = "RandomFlip";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  enum class Mode { kHorizontal, kVertical, kBoth };
  Mode mode = Mode::kBoth;
  std::optional<int64_t> seed = {};  // stored but not used, like the seeds below

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Adds the same number to all values of an image: a random number between factor[0] and factor[1],
// multiplied by the width of the value range. Clips the results to the value range, like
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

// Multiplies the difference between each value and the mean of its channel by a random number
// between 1 - factor[0] and 1 + factor[1].
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

// Replaces each value x of an image with value_range[1] - x. The probability of this change is
// drawn at random between factor[0] and factor[1].
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

// With probability `factor`, replaces all channels of an image with the image's brightness.
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
