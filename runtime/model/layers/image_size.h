// Defines layers that change the size of images [height,width,channels].
#pragma once

#include "runtime/model/layer.h"
#include "runtime/model/layers/resample.h"

namespace tfjob::model::layers {

// Resizes images, which are distorted unless one of the two flags is set: the image is then cropped
// or, on both sides, filled up to the aspect ratio of the target first.
struct Resizing {
  static constexpr std::string_view kClass = "Resizing";
  static constexpr bool kTrainingByDefault = true;
  int64_t height = 0, width = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  bool crop_to_aspect_ratio = false, pad_to_aspect_ratio = false;
  double fill_value = 0;
  bool antialias = false;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Returns the middle of the image. If the image is smaller than that, takes the largest part of it
// with the same aspect ratio, and resizes this part.
struct CenterCrop {
  static constexpr std::string_view kClass = "CenterCrop";
  static constexpr bool kTrainingByDefault = true;
  int64_t height = 0, width = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
