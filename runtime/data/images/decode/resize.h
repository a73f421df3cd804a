// Resizes images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/images/decode/decoded_image.h"

namespace tfjob::data {

enum class Resize { kBilinear, kNearest };

struct ResizeOptions {
  int64_t height = 0, width = 0;
  Resize method = Resize::kBilinear;
  // If set, first crops the image to the largest central part with the new aspect ratio, as Keras'
  // smart_resize does. Otherwise, the aspect ratio may change.
  bool crop_to_aspect_ratio = false;
};

// Resizes one image after another. Only one thread may use a resizer. Keeps its memory for the next
// image.
class Resizer {
 public:
  explicit Resizer(const ResizeOptions& options) : options_(options) {}

  // Fills `to`, [height, width, channels], with values from 0 to 255. Computes them as
  // tf.image.resize does without antialiasing, with half-integer pixel centres. An image that
  // already has the new size keeps its values.
  void Run(const DecodedImage& image, std::span<float> to);

 private:
  // The two input pixels, along one axis, between which an output pixel is interpolated.
  struct Sample {
    int64_t low = 0, high = 0;
    float weight = 0;  // the weight of `high`
  };
  // A rectangular part of an image.
  struct Window {
    const uint8_t* first = nullptr;  // its first value
    int64_t row = 0;                 // number of values between the starts of two rows
    int64_t height = 0, width = 0, channels = 0;
  };

  Window WindowOf(const DecodedImage& image) const;
  static std::vector<Sample> Samples(int64_t from, int64_t to);
  void Bilinear(const Window& window, std::span<float> to);
  void Nearest(const Window& window, std::span<float> to) const;

  const ResizeOptions options_;
  // The size of the last image, for which the samples were computed.
  int64_t height_ = 0, width_ = 0;
  std::vector<Sample> rows_, columns_;
  std::vector<float> blended_;  // one row, as wide as the window
};

}  // namespace tfjob::data
