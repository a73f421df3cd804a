// Resizes images. Private to this package.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/graph/builder.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::model::layers {

enum class Interpolation { kBilinear, kNearest, kBicubic, kLanczos3, kLanczos5 };
inline constexpr std::array<std::string_view, 5> kInterpolations = {
    "bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"};

// The largest number of elements of a matrix that ResampleWeights returns. A layer must refuse
// images that need a larger one.
inline constexpr int64_t kMostResampleWeights = int64_t{1} << 24;

// Returns a matrix [to,from] that resizes a row from `from` to `to` elements. Row i of the matrix
// contains the weights of the original elements in element i of the resized row. Follows
// tf.image.resize (TensorFlow 2), including the rounding of positions. The sources are the kernels
// resize_bilinear_op.cc, resize_nearest_neighbor_op.cc, resize_bicubic_op.cc and
// scale_and_translate_op.cc, all with half-pixel centres. If `antialias` is set, a row that shrinks
// is smoothed first; kNearest ignores `antialias`.
Tensor ResampleWeights(int64_t from, int64_t to, Interpolation interpolation, bool antialias);

// Resizes images [batch,height,width,channels], which must have a float type.
graph::Output Resample(graph::Builder& b, graph::Output images, int64_t height, int64_t width,
                       Interpolation interpolation, bool antialias);

// Describes the largest central window of an image that has the aspect ratio of the target, rounded
// as in Keras (keras/src/utils/image_utils.py, smart_resize).
struct Window2D {
  int64_t top, left, height, width;
};
Window2D LargestWindow(int64_t height, int64_t width, int64_t target_height, int64_t target_width);

}  // namespace tfjob::model::layers
