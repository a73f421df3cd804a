// Defines layers that enlarge or crop volumes [depth,height,width,channels] (kRank = 3), images
// [height,width,channels] (kRank = 2) and rows [steps,channels] (kRank = 1).
#pragma once

#include <vector>

#include "runtime/model/layer/layer.h"
#include "runtime/model/layers/resample.h"

namespace tfjob::model::layers {

// Adds zeros around each example.
template <int kRank>
struct ZeroPadding {
  static constexpr std::string_view kClass = kRank == 1   ? "ZeroPadding1D"
                                             : kRank == 2 ? "ZeroPadding2D"
                                                          : "ZeroPadding3D";
  static constexpr bool kAnyDType = true;
  // The numbers of zeros before and after each axis, such as [top,bottom,left,right].
  std::vector<int64_t> padding = std::vector<int64_t>(2 * kRank, 1);

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Removes the borders of each example.
template <int kRank>
struct Cropping {
  static constexpr std::string_view kClass = kRank == 1   ? "Cropping1D"
                                             : kRank == 2 ? "Cropping2D"
                                                          : "Cropping3D";
  static constexpr bool kAnyDType = true;
  std::vector<int64_t> cropping = std::vector<int64_t>(2 * kRank, kRank == 2 ? 0 : 1);

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Enlarges each example by the factors `size`, one per axis except the channel axis: repeats each
// element or, for images, interpolates.
template <int kRank>
struct UpSampling {
  static constexpr std::string_view kClass = kRank == 1   ? "UpSampling1D"
                                             : kRank == 2 ? "UpSampling2D"
                                                          : "UpSampling3D";
  static constexpr bool kAnyDType = true;
  std::vector<int64_t> size = std::vector<int64_t>(kRank, 2);
  Interpolation interpolation = Interpolation::kNearest;  // an argument only for images

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;

 private:
  graph::Output Repeat(const LayerCall& call, const Shape& out) const;
};

using ZeroPadding1D = ZeroPadding<1>;
using ZeroPadding2D = ZeroPadding<2>;
using ZeroPadding3D = ZeroPadding<3>;
using Cropping1D = Cropping<1>;
using Cropping2D = Cropping<2>;
using Cropping3D = Cropping<3>;
using UpSampling1D = UpSampling<1>;
using UpSampling2D = UpSampling<2>;
using UpSampling3D = UpSampling<3>;

}  // namespace tfjob::model::layers
