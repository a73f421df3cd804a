// Declares the parameters of the kernels for images and batch normalisation. The rules in
// ../parameters.h apply. Images are [images,height,width,channels]. The stride of images is the
// distance between pixels. A tensor has fewer than 2^31 elements.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {

// The windows along one axis of an image (tensor/window.h).
struct WindowSpan {
  uint32_t size, stride, dilation, before;
  uint32_t inputs;   // of the image
  uint32_t windows;  // pixels of the output
};
// The windows over images, numbered in the order of the output's pixels.
struct WindowSpans {
  WindowSpan height, width;
};

// GatherWindows writes a matrix whose rows are windows and whose columns are the elements that a
// window covers (im2col), in the order [group, row, column, channel of the group]. Elements of the
// padding are 0. GatherQuads does the same, but each thread copies four channels. This requires
// that addresses are multiples of the size of four elements, and that strides and depths are
// multiples of 4.
inline constexpr int kWindowThreads = 256;
struct GatherWindowsParameter {
  const void* image;
  void* matrix;
  int64_t image_stride;
  WindowSpans spans;
  uint32_t groups, depth;  // depth: channels per group
  uint32_t first;          // the window of row 0
  uint32_t count;          // elements of the matrix
  int32_t bytes;           // of an element: 2 or 4
};

// AddWindows is the transpose of GatherWindows: it adds each element of the matrix to the element
// of the images to which it corresponds (col2im). It updates the images starting at `first_image`.
// If the matrix starts in the middle of an image, its elements are added to the values that the
// image already has. AddQuads does the same for four channels per thread, under the conditions of
// GatherQuads.
struct AddWindowsParameter {
  const float* matrix;
  void* image;
  int64_t image_stride;
  WindowSpans spans;
  uint32_t groups, depth;
  uint32_t first, windows;  // the window of row 0, and the number of rows
  uint32_t first_image;
  uint32_t count;  // elements of the images
  FloatType type;  // of the images
};

// The depthwise kernels compute convolutions with one channel per group. The filter is
// [height,width,1,outputs]; output o depends on channel o / multiplier. Each thread of Depthwise
// computes an element of the output, and each thread of DepthwiseInput an element of the image's
// gradient.
struct DepthwiseParameter {
  const float* image;  // DepthwiseInput: not used
  const float* filter;
  const float* bias;    // may be null
  const float* output;  // DepthwiseInput: the output's gradient
  float* result;        // Depthwise: the output; DepthwiseInput: the image's gradient
  int64_t image_stride, filter_stride, output_stride;
  WindowSpans spans;
  uint32_t channels, multiplier;
  uint32_t count;  // elements of the result
  int32_t relu;
};

// DepthwiseFilter computes the filter's gradient in parts of kDepthwiseWindows windows. A block
// sums the products of one part for one element of the window and 32 outputs. Another kernel adds
// up the sums of the parts.
inline constexpr int kDepthwiseWarps = 8;
inline constexpr int kDepthwiseWindows = 256;
struct DepthwiseFilterParameter {
  const float* image;
  const float* output;  // the gradient
  float* sums;          // [parts, elements of a window, outputs]
  int64_t image_stride, output_stride;
  WindowSpans spans;
  uint32_t outputs, multiplier;
  uint32_t windows;  // of all images
};

// MaxPool and AvgPool compute one element of the output per thread. Windows have no dilation.
// FindMaxima finds, for each window, the first element that equals the maximum. It writes the index
// of that element's pixel in the image, or kNoMaximum.
inline constexpr uint32_t kNoMaximum = 0xffffffffu;
struct PoolParameter {
  const void* image;
  const void* pooled;  // FindMaxima: the maxima
  void* out;           // MaxPool, AvgPool
  uint32_t* found;     // FindMaxima: [windows, channels]
  int64_t image_stride, pooled_stride;
  WindowSpans spans;
  uint32_t channels;
  uint32_t count;  // elements of the output
  FloatType type;
};
// MaxPoolGrad and AvgPoolGrad compute one element of the image's gradient per thread.
struct PoolGradParameter {
  const uint32_t* found;  // MaxPoolGrad: from FindMaxima
  const void* pooled;     // the gradient of the pooled image
  void* image;
  int64_t image_stride, pooled_stride;
  WindowSpans spans;
  uint32_t channels;
  uint32_t count;  // elements of the image
  FloatType type;
};

// How an image continues outside its borders. The values are the same as those of cpu::Border.
enum class ImageBorder : int32_t { kConstant, kReflect, kWrap, kNearest };
// ImageTransform computes one element of the output per thread. ImageTransformGrad computes one
// channel of one image per thread, because only the transforms, which are in device memory,
// determine which pixels it adds to.
struct ImageTransformParameter {
  const float* in;          // the images, or the gradient of the transformed images
  const float* transforms;  // [images,8]
  float* out;
  int64_t in_stride, transform_stride, out_stride;
  uint32_t height, width, rows, cols;  // of the images, and of the transformed images
  uint32_t channels;
  uint32_t count;  // threads
  ImageBorder border;
  int32_t bilinear;
  float fill_value;
};

// The kernels for batch normalisation split a matrix into tiles of kNormRows rows and 32 columns,
// one per block. A block has kNormWarps warps. The blocks of the same rows are neighbours.
inline constexpr int kNormWarps = 8;
inline constexpr int kNormRows = 256;

// ColumnMoments computes two moments of each column in each part of kNormRows rows: the mean, and
// the sum of the squared deviations from the mean, divided by `divisor`.
struct ColumnMomentsParameter {
  const float* in;
  float* mean;     // [parts, cols]
  float* squares;  // [parts, cols]
  int64_t in_stride, rows;
  uint32_t cols;
  float divisor;
};
// MergeMoments merges the moments of up to kNormRows parts. Each part, except perhaps the last, has
// part_rows rows.
struct MergeMomentsParameter {
  const float* mean_in;     // [parts, cols]
  const float* squares_in;  // [parts, cols]
  float* mean;
  float* squares;
  int64_t rows, part_rows, parts;
  uint32_t cols;
  float divisor;
};

// The parameters and the moments of the channels, [cols] each.
struct BatchNormChannels {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  float epsilon;
};

// BatchNorm computes y = gamma·(x - mean)/√(variance + epsilon) + beta. Then adds `side` if it is
// set, and applies Relu if `relu` is set.
struct BatchNormParameter {
  const float* x;
  const float* side;  // may be null
  float* y;           // may be x or side
  BatchNormChannels channels;
  int64_t x_stride, side_stride, y_stride, rows;
  uint32_t cols;
  int32_t relu;
};

// How the gradient kernel determines which values the activation has let pass.
enum class PassedBy : int32_t {
  kAll,       // there is no activation
  kComputed,  // the normalised value is computed again
  kRead       // the activation's output is read
};
// BatchNormSums sums g and g·(x - mean) over parts of kNormRows rows, where g is the gradient
// before the activation.
struct BatchNormSumsParameter {
  const float* dy;
  const float* x;
  const float* y;     // read if passed_by is kRead
  const float* more;  // added to dy; may be null
  float* d_side;      // g is stored here; may be dy or null
  float* sums;        // [parts, 2, cols]
  BatchNormChannels channels;
  int64_t dy_stride, x_stride, y_stride, more_stride, d_side_stride, rows;
  uint32_t cols;
  PassedBy passed_by;
};
// BatchNormGrad computes dx from the sums, and the gradients of gamma and beta.
struct BatchNormGradParameter {
  const float* dy;  // g, unless passed_by is kComputed
  const float* x;
  const float* sums;  // [2, cols]
  float* dx;          // may be dy or x
  float* d_gamma;
  float* d_beta;
  BatchNormChannels channels;
  int64_t dy_stride, x_stride, dx_stride, rows;
  uint32_t cols;
  PassedBy passed_by;  // not kRead
};

}  // namespace tfjob::kernels::cuda
