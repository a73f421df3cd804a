// Defines layers that change the size of images [height,width,channels].
#pragma once

#include "runtime/model/layer/layer.h"
#include "runtime/model/layers/resample.h"

namespace tfjob::model::layers {

// Resizes images. With crop_to_aspect_ratio or pad_to_aspect_ratio, first crops or pads each image
// on both sides to the aspect ratio of the target. Otherwise, images may be distorted.
struct Resizing {
  static constexpr std::string_view kClass = "Resizing";
  static constexpr bool kComputesInFloat32 = true;
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

// Returns the central part of the image. If the image has fewer rows or columns than the target,
// instead resizes the largest central part that has the aspect ratio of the target.
struct CenterCrop {
  static constexpr std::string_view kClass = "CenterCrop";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  int64_t height = 0, width = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// In training, crops each image to a random part of the given size; Keras uses the same part for
// all images of a batch. In prediction, or if the image is smaller than the given size, resizes the
// largest central part that has the aspect ratio of the result, like tf.keras 2. In prediction,
// Keras 3 returns the whole image, which contradicts its declared output shape.
struct RandomCrop {
  static constexpr std::string_view kClass = "RandomCrop";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kTrainingByDefault = true;
  int64_t height = 0, width = 0;
  std::optional<int64_t> seed = {};  // stored but not used

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
