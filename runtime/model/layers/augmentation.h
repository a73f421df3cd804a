// Defines layers that change images [height,width,channels] at random in training, and do nothing
// otherwise. Each image of a batch gets random numbers of its own.
#pragma once

#include <array>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Reverses the columns, the rows, or both, of half of the images.
struct RandomFlip {
  static constexpr std::string_view kClass = "RandomFlip";
  static constexpr bool kTrainingByDefault = true;
  enum class Mode { kHorizontal, kVertical, kBoth };
  Mode mode = Mode::kBoth;
  std::optional<int64_t> seed = {};  // only stored, in all of these layers

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Adds a number between factor[0] and factor[1], times the width of the value range. Results are
// clipped to this range, as those of RandomContrast are.
struct RandomBrightness {
  static constexpr std::string_view kClass = "RandomBrightness";
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor, value_range = {0, 255};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Multiplies the distances from the mean of each channel by a number between 1 - factor[0] and
// 1 + factor[1].
struct RandomContrast {
  static constexpr std::string_view kClass = "RandomContrast";
  static constexpr bool kTrainingByDefault = true;
  std::vector<double> factor, value_range = {0, 255};
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
