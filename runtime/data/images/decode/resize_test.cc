#include "runtime/data/images/decode/resize.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tfjob::data {
namespace {

DecodedImage ImageOf(const std::vector<uint8_t>& pixels, int64_t height, int64_t width) {
  return {.format = "PNG",
          .height = height,
          .width = width,
          .channels = static_cast<int64_t>(pixels.size()) / height / width,
          .pixels = pixels};
}

std::vector<float> Resized(const DecodedImage& image, const ResizeOptions& options) {
  std::vector<float> values(static_cast<size_t>(options.height * options.width * image.channels));
  Resizer(options).Run(image, values);
  return values;
}

// The expected values below are those of tf.image.resize and of Keras' smart_resize.

TEST(Resize, BilinearHasHalfIntegerCentres) {
  const std::vector<uint8_t> row = {0, 10, 20, 100};
  EXPECT_EQ(Resized(ImageOf(row, 1, 4), {.height = 1, .width = 2}), (std::vector<float>{5, 60}));
  EXPECT_EQ(Resized(ImageOf(row, 1, 4), {.height = 1, .width = 8}),
            (std::vector<float>{0, 2.5, 7.5, 12.5, 17.5, 40, 80, 100}));
  EXPECT_EQ(Resized(ImageOf(row, 4, 1), {.height = 2, .width = 1}), (std::vector<float>{5, 60}));
  const std::vector<uint8_t> square = {0, 100, 50, 250};
  EXPECT_EQ(Resized(ImageOf(square, 2, 2), {.height = 1, .width = 1}), (std::vector<float>{100}));
}

TEST(Resize, NearestTakesWholePixels) {
  const std::vector<uint8_t> row = {1, 2, 3, 4, 5};
  const auto nearest = [&](int64_t width) {
    return Resized(ImageOf(row, 1, 5), {.height = 1, .width = width, .method = Resize::kNearest});
  };
  EXPECT_EQ(nearest(2), (std::vector<float>{2, 4}));
  EXPECT_EQ(nearest(3), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(nearest(10), (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
}

TEST(Resize, ChannelsStayApart) {
  for (const int64_t channels : {1, 3, 4}) {
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < 6 * 7; ++i) {
      for (int64_t c = 0; c < channels; ++c) pixels.push_back(static_cast<uint8_t>(20 * c + i));
    }
    for (const Resize method : {Resize::kBilinear, Resize::kNearest}) {
      const ResizeOptions options{.height = 5, .width = 3, .method = method};
      const std::vector<float> all = Resized(ImageOf(pixels, 6, 7), options);
      for (int64_t c = 0; c < channels; ++c) {
        std::vector<uint8_t> one;
        for (size_t i = static_cast<size_t>(c); i < pixels.size();
             i += static_cast<size_t>(channels))
          one.push_back(pixels[i]);
        const std::vector<float> alone = Resized(ImageOf(one, 6, 7), options);
        for (size_t i = 0; i < alone.size(); ++i)
          EXPECT_EQ(all[i * static_cast<size_t>(channels) + static_cast<size_t>(c)], alone[i]);
      }
    }
  }
}

TEST(Resize, CropsTheMiddle) {
  const std::vector<uint8_t> row = {1, 2, 3, 4, 5, 6};
  const ResizeOptions square{.height = 2, .width = 2, .crop_to_aspect_ratio = true};
  EXPECT_EQ(Resized(ImageOf({1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}, 2, 6), square),
            (std::vector<float>{3, 4, 13, 14}));
  EXPECT_EQ(Resized(ImageOf(row, 1, 6), {.height = 1, .width = 3, .crop_to_aspect_ratio = true}),
            (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(Resized(ImageOf(row, 6, 1), {.height = 2, .width = 1, .crop_to_aspect_ratio = true}),
            (std::vector<float>{3, 4}));
}

TEST(Resize, FollowsTheSizeOfTheImage) {
  const ResizeOptions options{.height = 3, .width = 3};
  Resizer resizer(options);
  std::vector<uint8_t> small(5 * 4, 7), large(50 * 90, 9);
  std::vector<float> values(9);
  for (int i = 0; i < 2; ++i) {
    resizer.Run(ImageOf(small, 5, 4), values);
    EXPECT_EQ(values, std::vector<float>(9, 7));
    resizer.Run(ImageOf(large, 50, 90), values);
    EXPECT_EQ(values, std::vector<float>(9, 9));
  }
}

}  // namespace
}  // namespace tfjob::data
