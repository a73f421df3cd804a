// Checks layers that prepare data: layers that change images at random (the changes must be the
// same for equal steps and seeds), layers that resize images, and the errors that these layers
// report. tests/interop compares the results of layers that are not random with Keras.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/model/layers/augmentation.h"
#include "runtime/model/layers/categories.h"
#include "runtime/model/layers/image_size.h"
#include "tests/numerics/trained_layer.h"

namespace tfjob::model {
namespace {

constexpr int64_t kImages = 64, kHeight = 3, kWidth = 4, kChannels = 2;
constexpr int64_t kPixels = kHeight * kWidth, kSize = kPixels * kChannels;

Values Images() {
  Values x(static_cast<size_t>(kImages * kSize));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101);
  return x;
}

Trained TrainOnImages(const LayerConfig& layer, int64_t step) {
  return Train(layer, {kImages, kHeight, kWidth, kChannels}, Images(), step);
}

TEST(Preprocessing, RandomFlipFlipsHalfOfTheImages) {
  using Mode = layers::RandomFlip::Mode;
  const Values x = Images();
  for (const Mode mode : {Mode::kHorizontal, Mode::kVertical, Mode::kBoth}) {
    std::set<std::vector<bool>> patterns;
    for (int64_t step = 0; step < 3; ++step) {
      const Trained trained = TrainOnImages(layers::RandomFlip{.mode = mode}, step);
      ExpectGradientOfLinear(trained, x);
      std::vector<bool> flipped;
      for (int64_t image = 0; image < kImages; ++image) {
        bool as_it_was = true, reversed = true;
        for (int64_t i = 0; i < kSize; ++i) {
          const int64_t c = i % kChannels, w = i / kChannels % kWidth, h = i / kChannels / kWidth;
          const int64_t fh = mode == Mode::kHorizontal ? h : kHeight - 1 - h;
          const int64_t fw = mode == Mode::kVertical ? w : kWidth - 1 - w;
          const int64_t from = (fh * kWidth + fw) * kChannels + c;
          const float got = trained.y[static_cast<size_t>(image * kSize + i)];
          as_it_was &= got == x[static_cast<size_t>(image * kSize + i)];
          reversed &= got == x[static_cast<size_t>(image * kSize + from)];
        }
        EXPECT_TRUE(as_it_was != reversed) << "image " << image;
        flipped.push_back(reversed);
      }
      const auto count = std::ranges::count(flipped, true);
      EXPECT_GT(count, kImages / 4);
      EXPECT_LT(count, kImages * 3 / 4);
      patterns.insert(flipped);
    }
    EXPECT_EQ(patterns.size(), 3u) << "steps differ";
  }
}

TEST(Preprocessing, RandomBrightnessShiftsEachImageByANumberOfItsOwn) {
  const layers::RandomBrightness layer{.factor = {0.3, -0.1}, .value_range = {0, 1000}};
  const Values x = Images();
  const Trained trained = TrainOnImages(layer, 1);
  std::set<float> shifts;
  double least = 1000, most = -1000;
  for (size_t image = 0; image < kImages; ++image) {
    float shift = 0;
    for (size_t i = image * kSize; i < (image + 1) * kSize; ++i) {
      const double change = trained.y[i] - x[i];
      if (trained.y[i] > 0 && shift == 0) shift = trained.y[i] - x[i];
      least = std::min(least, change);
      most = std::max(most, change);
      EXPECT_GE(trained.y[i], 0) << "clipped to the value range";
      if (trained.y[i] > 0) {
        EXPECT_NEAR(change, shift, 1e-3);
        EXPECT_EQ(trained.gradient[i], Coefficient(i));
      }
    }
    shifts.insert(shift);
  }
  EXPECT_GE(least, -100.01);
  EXPECT_LE(most, 300.01);
  EXPECT_GT(most, 200) << "in 64 images";
  EXPECT_LT(least, -20);
  EXPECT_GT(shifts.size(), kImages * 3 / 4);
}

TEST(Preprocessing, RandomContrastStretchesEachChannelAroundItsMean) {
  const layers::RandomContrast layer{.factor = {0.5, 0.25}, .value_range = {-1e6, 1e6}};
  const Values x = Images();
  const Trained trained = TrainOnImages(layer, 2);
  ExpectGradientOfLinear(trained, x);
  double least = 100, most = 0;
  for (size_t image = 0; image < kImages; ++image) {
    for (size_t c = 0; c < kChannels; ++c) {
      double mean = 0;
      for (size_t i = 0; i < kPixels; ++i) mean += x[image * kSize + i * kChannels + c] / kPixels;
      const size_t first = image * kSize + c;
      const double stretch = (trained.y[first] - mean) / (x[first] - mean);
      least = std::min(least, stretch);
      most = std::max(most, stretch);
      for (size_t i = first; i < (image + 1) * kSize; i += kChannels)
        EXPECT_NEAR(trained.y[i], (x[i] - mean) * stretch + mean, 1e-2);
    }
  }
  EXPECT_GE(least, 0.75 - 1e-3);  // 1 - 0.25, the lower bound
  EXPECT_LE(most, 1.5 + 1e-3);
  EXPECT_LT(least, 0.85);
  EXPECT_GT(most, 1.4);
}

TEST(Preprocessing, ResizingHasTheGradientOfALinearFunction) {
  using enum layers::Interpolation;
  const Values x = Images();
  for (const layers::Interpolation interpolation : {kBilinear, kNearest, kBicubic, kLanczos3}) {
    const layers::Resizing layer{.height = 5, .width = 3, .interpolation = interpolation};
    const Trained trained = TrainOnImages(layer, 0);
    EXPECT_EQ(trained.y.size(), static_cast<size_t>(kImages * 5 * 3 * kChannels));
    ExpectGradientOfLinear(trained, x);
  }
}

TEST(Preprocessing, WeightsOfARowAreThoseOfTensorFlow) {
  using enum layers::Interpolation;
  const auto weights = [](int64_t from, int64_t to, layers::Interpolation interpolation,
                          bool antialias) {
    const Tensor tensor = layers::ResampleWeights(from, to, interpolation, antialias);
    return Values(tensor.data<float>().begin(), tensor.data<float>().end());
  };
  EXPECT_EQ(weights(2, 4, kBilinear, false), Values({1, 0, 0.75f, 0.25f, 0.25f, 0.75f, 0, 1}));
  EXPECT_EQ(weights(2, 4, kNearest, false), Values({1, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(weights(4, 2, kBilinear, false), Values({0.5f, 0.5f, 0, 0, 0, 0, 0.5f, 0.5f}));
  const Values smooth = weights(4, 2, kBilinear, true);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(smooth[i], Values({3, 3, 1, 0})[i] / 7, 1e-6);
    EXPECT_NEAR(smooth[i], smooth[7 - i], 1e-6);
  }
  for (const layers::Interpolation interpolation : {kBicubic, kLanczos3, kLanczos5}) {
    for (const auto& [from, to] : {std::pair{9, 4}, {4, 9}, {1, 3}, {7, 1}}) {
      const Values all = weights(from, to, interpolation, from > to);
      for (int row = 0; row < to; ++row) {
        float sum = 0;
        for (int i = 0; i < from; ++i) sum += all[static_cast<size_t>(row * from + i)];
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
}

std::string ErrorOf(const LayerConfig& layer, TensorType in) {
  const TensorType types[] = {std::move(in)};
  return std::string(Message(layer.OutputTypes(types).status()));
}

TEST(Preprocessing, ErrorsSayWhatIsExpected) {
  const TensorType image{DType::kFloat32, {4, 5, 3}}, ids{DType::kInt32, {6}};
  EXPECT_EQ(ErrorOf(layers::CategoryEncoding{.num_tokens = 4}, {DType::kInt32, {2, 3}}),
            "output_mode multi_hot expects examples of one axis, got [2,3]");
  EXPECT_EQ(
      ErrorOf(layers::CategoryEncoding{.num_tokens = 4, .output_mode = layers::Encoding::kInt},
              ids),
      "output_mode: expected one of one_hot, multi_hot, count, got int");
  EXPECT_EQ(ErrorOf(layers::Discretization{}, ids),
            "expected bin_boundaries: give them to the layer, or adapt it");
  EXPECT_EQ(ErrorOf(layers::Discretization{.bin_boundaries = {1, 0}}, ids),
            "expected bin_boundaries in ascending order");
  EXPECT_EQ(ErrorOf(layers::IntegerLookup{}, ids),
            "expected a vocabulary; that of a layer that was adapted is not supported, so give it "
            "to the layer as an argument");
  EXPECT_EQ(ErrorOf(layers::IntegerLookup{.vocabulary = {5, 3, 5}}, ids),
            "the vocabulary contains 5 twice");
  EXPECT_EQ(ErrorOf(layers::IntegerLookup{.vocabulary = {5, -1}}, ids),
            "the vocabulary contains -1, which is also the oov_token or the mask_token; leave it "
            "out");
  EXPECT_EQ(ErrorOf(layers::IntegerLookup{.vocabulary = {5, int64_t{1} << 40}}, ids),
            "expected a vocabulary within a range of 1048576 integers, got integers from 5 to "
            "1099511627776");
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_NE(ErrorOf(layers::IntegerLookup{.vocabulary = {least, least + 1}}, ids), "");
  EXPECT_EQ(ErrorOf(layers::Resizing{.height = 2, .width = 2}, ids),
            "expected float values, got int32[6]");
  EXPECT_EQ(ErrorOf(layers::Resizing{.height = 2, .width = 2}, {DType::kFloat32, {6}}),
            "expected examples of shape [height,width,channels], got [6]");
  EXPECT_EQ(
      ErrorOf(
          layers::Resizing{
              .height = 2, .width = 2, .crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true},
          image),
      "expected only one of crop_to_aspect_ratio and pad_to_aspect_ratio to be true");
  EXPECT_EQ(ErrorOf(layers::RandomBrightness{.factor = {1.5}}, image),
            "factor: expected a number, or two, from -1 to 1, got [1.5]");
  EXPECT_EQ(ErrorOf(layers::RandomContrast{.factor = {-0.5, 0.5}}, image),
            "factor: expected a number, or two, from 0 to 1, got [-0.5, 0.5]");
  EXPECT_EQ(ErrorOf(layers::RandomContrast{.factor = {0.5}, .value_range = {1}}, image),
            "value_range: expected two numbers, got 1");
}

}  // namespace
}  // namespace tfjob::model
