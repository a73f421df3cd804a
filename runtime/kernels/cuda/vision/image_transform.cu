// Implements the projective transformation of images and its gradient. The arithmetic is that of
// cpu/image_transform.cc.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {
namespace {

// The four pixels of the image from which a pixel of the output is interpolated. If the index of a
// pixel is -1, the fill value is used.
struct Sources {
  int64_t top_left, top_right, bottom_left, bottom_right;
  float right, bottom;  // the weights of the right column and of the bottom row
};

// Maps a coordinate that may be outside the image to one inside the image. The image's value at the
// result is used for the original coordinate.
TFJOB_DEVICE float Inside(ImageBorder border, float at, uint32_t size) {
  const float length = static_cast<float>(size), last = length - 1.0f;
  if (border == ImageBorder::kConstant || (at >= 0.0f && at <= last)) return at;
  if (border == ImageBorder::kReflect) {
    at -= 2.0f * length * floorf(at / (2.0f * length));
    if (at >= length) at = 2.0f * length - at - 1.0f;
  } else if (border == ImageBorder::kWrap) {
    if (last == 0.0f) return 0.0f;
    at = at < 0.0f ? at + length * (floorf(-at / last) + 1.0f) : at - length * floorf(at / last);
  }
  return at >= 0.0f ? (at < last ? at : last) : 0.0f;  // NaN becomes 0
}

TFJOB_DEVICE int64_t PixelAt(const ImageTransformParameter& p, float x, float y) {
  const bool inside =
      x >= 0.0f && y >= 0.0f && x < static_cast<float>(p.width) && y < static_cast<float>(p.height);
  return inside ? static_cast<int64_t>(y) * p.width + static_cast<int64_t>(x) : -1;
}

TFJOB_DEVICE Sources SourcesOf(const ImageTransformParameter& p, const float* transform,
                               uint32_t row, uint32_t col) {
  const float x = static_cast<float>(col), y = static_cast<float>(row);
  const float k = transform[6] * x + transform[7] * y + 1.0f;
  if (k == 0.0f) return {-1, -1, -1, -1, 0.0f, 0.0f};
  const float at_x =
      Inside(p.border, (transform[0] * x + transform[1] * y + transform[2]) / k, p.width);
  const float at_y =
      Inside(p.border, (transform[3] * x + transform[4] * y + transform[5]) / k, p.height);
  if (p.bilinear == 0) return {PixelAt(p, roundf(at_x), roundf(at_y)), -1, -1, -1, 0.0f, 0.0f};
  const float left = floorf(at_x), top = floorf(at_y);
  return {PixelAt(p, left, top),
          PixelAt(p, left + 1.0f, top),
          PixelAt(p, left, top + 1.0f),
          PixelAt(p, left + 1.0f, top + 1.0f),
          at_x - left,
          at_y - top};
}

// Returns the weighted value of a pixel. `image` is the address of the channel in the image's first
// pixel.
TFJOB_DEVICE float Weighted(const ImageTransformParameter& p, const float* image, int64_t pixel,
                            float weight) {
  if (weight == 0.0f) return 0.0f;  // even if the pixel is infinite
  return weight * (pixel < 0 ? p.fill_value : image[pixel * p.in_stride]);
}

TFJOB_DEVICE void AddTo(const ImageTransformParameter& p, float* image, int64_t pixel, float weight,
                        float dy) {
  if (pixel >= 0 && weight != 0.0f) image[pixel * p.out_stride] += weight * dy;
}

}  // namespace

TFJOB_KERNEL(ImageTransform, ImageTransformParameter, kWindowThreads) {
  const uint32_t element = blockIdx.x * kWindowThreads + threadIdx.x;
  if (element >= p.count) return;
  const Pixel at = PixelOf(element, p.rows, p.cols, p.channels);
  const Sources from = SourcesOf(p, p.transforms + at.image * p.transform_stride, at.row, at.col);
  const float* image =
      p.in + static_cast<int64_t>(at.image) * p.height * p.width * p.in_stride + at.channel;
  const float left = 1.0f - from.right, top = 1.0f - from.bottom;
  float sum = Weighted(p, image, from.top_left, top * left);
  sum += Weighted(p, image, from.top_right, top * from.right);
  sum += Weighted(p, image, from.bottom_left, from.bottom * left);
  sum += Weighted(p, image, from.bottom_right, from.bottom * from.right);
  p.out[NumberOf(at.image, at.row, at.col, p.rows, p.cols) * p.out_stride + at.channel] = sum;
}

TFJOB_KERNEL(ImageTransformGrad, ImageTransformParameter, kWindowThreads) {
  const uint32_t thread = blockIdx.x * kWindowThreads + threadIdx.x;
  if (thread >= p.count) return;
  const uint32_t number = thread / p.channels, channel = thread - number * p.channels;
  float* image = p.out + static_cast<int64_t>(number) * p.height * p.width * p.out_stride + channel;
  for (int64_t pixel = 0; pixel < static_cast<int64_t>(p.height) * p.width; ++pixel)
    image[pixel * p.out_stride] = 0.0f;
  const float* transform = p.transforms + number * p.transform_stride;
  for (uint32_t row = 0; row < p.rows; ++row) {
    for (uint32_t col = 0; col < p.cols; ++col) {
      const float dy = p.in[NumberOf(number, row, col, p.rows, p.cols) * p.in_stride + channel];
      const Sources to = SourcesOf(p, transform, row, col);
      const float left = 1.0f - to.right, top = 1.0f - to.bottom;
      AddTo(p, image, to.top_left, top * left, dy);
      AddTo(p, image, to.top_right, top * to.right, dy);
      AddTo(p, image, to.bottom_left, to.bottom * left, dy);
      AddTo(p, image, to.bottom_right, to.bottom * to.right, dy);
    }
  }
}

}  // namespace tfjob::kernels::cuda
