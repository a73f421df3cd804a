// Defines layers that add randomness in training, and do nothing otherwise.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Sets each element to 0 with probability `rate`; divides the remaining elements by 1 - rate.
struct Dropout {
  static constexpr std::string_view kClass = "Dropout";
  static constexpr bool kSupportsMasking = true;
  double rate = 0;
  std::optional<int64_t> seed = {};  // stored but not used: dropout uses the run's seed
  // The shape in which elements are drawn, with the axis of the batch. Along axes of size 1, all
  // elements are kept or dropped together; -1 stands for the size of the input. Empty: the input's
  // shape.
  std::vector<int64_t> noise_shape = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Adds normal noise with mean 0 to each element.
struct GaussianNoise {
  static constexpr std::string_view kClass = "GaussianNoise";
  static constexpr bool kSupportsMasking = true;
  double stddev = 0;
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

// Multiplies each element by normal noise with mean 1 and standard deviation √(rate / (1 - rate)).
struct GaussianDropout {
  static constexpr std::string_view kClass = "GaussianDropout";
  static constexpr bool kSupportsMasking = true;
  double rate = 0;
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

// Drops whole channels: all steps of a channel in [steps,channels], all pixels in
// [height,width,channels], or all voxels in [depth,height,width,channels].
template <int kRank>
struct SpatialDropout {
  static constexpr std::string_view kClass = kRank == 1   ? "SpatialDropout1D"
                                             : kRank == 2 ? "SpatialDropout2D"
                                                          : "SpatialDropout3D";
  static constexpr bool kSupportsMasking = true;
  double rate = 0;
  std::optional<int64_t> seed = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};
using SpatialDropout1D = SpatialDropout<1>;
using SpatialDropout2D = SpatialDropout<2>;
using SpatialDropout3D = SpatialDropout<3>;

// Sets each element to the minimum of SELU with probability `rate`. Shifts and scales the result to
// preserve mean and variance (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
struct AlphaDropout {
  static constexpr std::string_view kClass = "AlphaDropout";
  static constexpr bool kSupportsMasking = true;
  double rate = 0;
  std::optional<int64_t> seed = {};
  std::vector<int64_t> noise_shape = {};  // as in Dropout

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
