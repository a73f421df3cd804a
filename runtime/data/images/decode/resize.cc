#include "runtime/data/images/decode/resize.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace tfjob::data {
namespace {

void Widen(const uint8_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// Computes a row by interpolating between two rows.
void Blend(const uint8_t* low, const uint8_t* high, float weight, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(low[i]);
    to[i] = a + (static_cast<float>(high[i]) - a) * weight;
  }
}

// Computes a row of the output from `from`, a row that has been interpolated vertically. The type S
// is Resizer::Sample, which is private. Here, its `low` and `high` are indices of values, not of
// pixels.
template <int channels, typename S>
void BlendColumns(const float* from, const std::vector<S>& columns, float* to) {
  for (const S& column : columns) {
    const float* low = from + column.low;
    const float* high = from + column.high;
    for (int c = 0; c < channels; ++c) to[c] = low[c] + (high[c] - low[c]) * column.weight;
    to += channels;
  }
}

// Returns the length to which a side is cropped, computed as in Keras.
int64_t CroppedTo(int64_t side, int64_t other, int64_t target, int64_t other_target) {
  const float wanted = static_cast<float>(other * target) / static_cast<float>(other_target);
  return std::clamp<int64_t>(static_cast<int64_t>(wanted), 1, side);
}

}  // namespace

Resizer::Window Resizer::WindowOf(const DecodedImage& image) const {
  Window window{.first = image.pixels.data(),
                .row = image.width * image.channels,
                .height = image.height,
                .width = image.width,
                .channels = image.channels};
  if (!options_.crop_to_aspect_ratio) return window;
  window.height = CroppedTo(image.height, image.width, options_.height, options_.width);
  window.width = CroppedTo(image.width, image.height, options_.width, options_.height);
  window.first += (image.height - window.height) / 2 * window.row +
                  (image.width - window.width) / 2 * image.channels;
  return window;
}

std::vector<Resizer::Sample> Resizer::Samples(int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<Sample> samples(static_cast<size_t>(to));
  for (size_t i = 0; i < samples.size(); ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float below = std::floor(at);
    const auto low = static_cast<int64_t>(below);
    samples[i] = {.low = std::clamp<int64_t>(low, 0, from - 1),
                  .high = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, from - 1),
                  .weight = at - below};
  }
  return samples;
}

void Resizer::Bilinear(const Window& window, std::span<float> to) {
  if (height_ != window.height || width_ != window.width) {
    height_ = window.height;
    width_ = window.width;
    rows_ = Samples(height_, options_.height);
    columns_ = Samples(width_, options_.width);
    for (Sample& column : columns_) {
      column.low *= window.channels;
      column.high *= window.channels;
    }
  }
  const int64_t count = window.width * window.channels;
  blended_.resize(static_cast<size_t>(count));
  const auto blend_columns = window.channels == 1   ? BlendColumns<1, Sample>
                             : window.channels == 3 ? BlendColumns<3, Sample>
                                                    : BlendColumns<4, Sample>;
  float* out = to.data();
  for (const Sample& row : rows_) {
    Blend(window.first + row.low * window.row, window.first + row.high * window.row, row.weight,
          count, blended_.data());
    blend_columns(blended_.data(), columns_, out);
    out += options_.width * window.channels;
  }
}

void Resizer::Nearest(const Window& window, std::span<float> to) const {
  // Returns the index of the nearest input pixel along one axis.
  const auto nearest = [](int64_t i, int64_t from, int64_t size) {
    const float scale = static_cast<float>(from) / static_cast<float>(size);
    return std::min(static_cast<int64_t>((static_cast<float>(i) + 0.5f) * scale), from - 1);
  };
  float* out = to.data();
  for (int64_t y = 0; y < options_.height; ++y) {
    const uint8_t* row = window.first + nearest(y, window.height, options_.height) * window.row;
    for (int64_t x = 0; x < options_.width; ++x) {
      Widen(row + nearest(x, window.width, options_.width) * window.channels, window.channels, out);
      out += window.channels;
    }
  }
}

void Resizer::Run(const DecodedImage& image, std::span<float> to) {
  const int64_t values = options_.height * options_.width * image.channels;
  ENFORCE(static_cast<int64_t>(to.size()) == values, "memory for the new size");
  ENFORCE(image.channels == 1 || image.channels == 3 || image.channels == 4, "decoded channels");
  const Window window = WindowOf(image);
  if (window.height == options_.height && window.width == options_.width) {
    for (int64_t y = 0; y < window.height; ++y) {
      const int64_t count = window.width * window.channels;
      Widen(window.first + y * window.row, count, to.data() + y * count);
    }
  } else if (options_.method == Resize::kNearest) {
    Nearest(window, to);
  } else {
    Bilinear(window, to);
  }
}

}  // namespace tfjob::data
