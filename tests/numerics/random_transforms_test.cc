// Checks layers that move the pixels of images at random. If both bounds of a factor are equal, the
// factor is not random, and the result is compared with plain loops. tests/interop compares such
// layers with Keras.
#include "runtime/model/layers/random_transforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "runtime/model/layers/augmentation.h"
#include "runtime/model/layers/image_size.h"
#include "tests/numerics/trained_layer.h"

namespace tfjob::model {
namespace {

using FillMode = layers::TransformOptions::FillMode;
using Factor = std::vector<double>;

// Contains a batch of images [batch,side,side,2].
struct Batch {
  int64_t batch, side;

  Shape shape() const { return {batch, side, side, 2}; }
  size_t At(int64_t image, int64_t row, int64_t column, int64_t channel) const {
    return static_cast<size_t>(((image * side + row) * side + column) * 2 + channel);
  }
  // Returns images in which channel 0 contains the row of each pixel, and channel 1 contains its
  // column.
  Values Positions() const {
    Values x(static_cast<size_t>(shape().num_elements()));
    for (int64_t i = 0; i < batch * side * side; ++i) {
      x[static_cast<size_t>(2 * i)] = static_cast<float>(i / side % side);
      x[static_cast<size_t>(2 * i + 1)] = static_cast<float>(i % side);
    }
    return x;
  }
};

Trained TrainOnPositions(const LayerConfig& layer, const Batch& batch, int64_t step) {
  const Values x = batch.Positions();
  const Trained trained = Train(layer, batch.shape(), x, step);
  ExpectGradientOfLinear(trained, x);
  return trained;
}

// Checks that pixel (row, column) of the result is pixel from(row, column) of the original image.
using Place = std::pair<int64_t, int64_t>;
void ExpectMoved(const LayerConfig& layer, const Batch& batch,
                 const std::function<Place(int64_t row, int64_t column)>& from) {
  const Trained trained = TrainOnPositions(layer, batch, 1);
  for (int64_t image = 0; image < batch.batch; ++image) {
    for (int64_t row = 0; row < batch.side; ++row) {
      for (int64_t column = 0; column < batch.side; ++column) {
        const auto [expected_row, expected_column] = from(row, column);
        EXPECT_NEAR(trained.y[batch.At(image, row, column, 0)], expected_row, 1e-4);
        EXPECT_NEAR(trained.y[batch.At(image, row, column, 1)], expected_column, 1e-4);
      }
    }
  }
}

TEST(RandomTransforms, ATranslationMovesDownAndRightInEveryFillMode) {
  const Batch batch{2, 4};
  const auto layer = [](FillMode mode) {
    return layers::RandomTranslation{.height_factor = {0.5, 0.5},
                                     .width_factor = {-0.25, -0.25},
                                     .options = {.fill_mode = mode, .fill_value = 9}};
  };
  // Rows -2 and -1 are above the image, and column 4 is to the right of the image.
  ExpectMoved(layer(FillMode::kReflect), batch, [](int64_t row, int64_t column) {
    return Place{row < 2 ? 1 - row : row - 2, std::min<int64_t>(column + 1, 3)};
  });
  ExpectMoved(layer(FillMode::kNearest), batch, [](int64_t row, int64_t column) {
    return Place{std::max<int64_t>(row - 2, 0), std::min<int64_t>(column + 1, 3)};
  });
  ExpectMoved(layer(FillMode::kWrap), batch,
              [](int64_t row, int64_t column) { return Place{(row + 2) % 4, (column + 1) % 4}; });
  const Values x = batch.Positions();
  const Trained filled = Train(layer(FillMode::kConstant), batch.shape(), x, 1);
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t column = 0; column < 4; ++column) {
      const bool inside = row >= 2 && column < 3;
      EXPECT_EQ(filled.y[batch.At(1, row, column, 0)], inside ? row - 2 : 9);
      EXPECT_EQ(filled.y[batch.At(1, row, column, 1)], inside ? column + 1 : 9);
    }
  }
}

TEST(RandomTransforms, AQuarterTurnIsCounterclockwise) {
  for (const int64_t side : {4, 5}) {
    ExpectMoved(layers::RandomRotation{.factor = {0.25, 0.25}}, {3, side},
                [&](int64_t row, int64_t column) { return Place{column, side - 1 - row}; });
    ExpectMoved(
        layers::RandomRotation{.factor = {-0.5, -0.5}}, {3, side},
        [&](int64_t row, int64_t column) { return Place{side - 1 - row, side - 1 - column}; });
  }
}

TEST(RandomTransforms, AZoomKeepsTheCentre) {
  const Batch batch{2, 5};
  const auto check = [&](const Factor& width_factor, double width_zoom) {
    const layers::RandomZoom layer{.height_factor = {-0.5, -0.5}, .width_factor = width_factor};
    const Trained trained = TrainOnPositions(layer, batch, 1);
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t column = 1; column < 4; ++column) {  // inside the image for all zooms
        EXPECT_NEAR(trained.y[batch.At(1, row, column, 0)], 2 + 0.5 * (double(row) - 2), 1e-5);
        EXPECT_NEAR(trained.y[batch.At(1, row, column, 1)], 2 + width_zoom * (double(column) - 2),
                    1e-5);
      }
    }
  };
  check({}, 0.5);
  check({0.75, 0.75}, 1.75);
}

TEST(RandomTransforms, AShearHasARandomSignForBothAxes) {
  const Batch batch{64, 5};
  const layers::RandomShear layer{.x_factor = {0.5, 0.5}, .y_factor = {0.25, 0.25}};
  const Trained trained = TrainOnPositions(layer, batch, 1);
  int64_t positive = 0;
  for (int64_t image = 0; image < batch.batch; ++image) {
    // The pixel (2, 2) comes from row 2 ± 0.5 and column 2 ± 1.
    const float row = trained.y[batch.At(image, 2, 2, 0)],
                column = trained.y[batch.At(image, 2, 2, 1)];
    const float sign = row > 2 ? 1 : -1;
    EXPECT_NEAR(row, 2 + sign * 0.5, 1e-5);
    EXPECT_NEAR(column, 2 + sign, 1e-5);
    positive += row > 2;
  }
  EXPECT_GT(positive, 16);
  EXPECT_LT(positive, 48);
}

TEST(RandomTransforms, EachImageOfEachStepHasItsOwnNumbersWithinTheBounds) {
  const Batch batch{64, 9};
  const layers::RandomTranslation layer{.height_factor = {0.1, 0.3}, .width_factor = {0.2}};
  std::set<std::pair<float, float>> places;
  float least[] = {9, 9}, most[] = {0, 0};
  for (int64_t step = 1; step <= 3; ++step) {
    const Trained trained = TrainOnPositions(layer, batch, step);
    for (int64_t image = 0; image < batch.batch; ++image) {
      const std::pair<float, float> at = {trained.y[batch.At(image, 4, 4, 0)],
                                          trained.y[batch.At(image, 4, 4, 1)]};
      places.insert(at);
      least[0] = std::min(least[0], at.first), most[0] = std::max(most[0], at.first);
      least[1] = std::min(least[1], at.second), most[1] = std::max(most[1], at.second);
    }
  }
  EXPECT_EQ(places.size(), 3 * 64U);
  EXPECT_GE(least[0], 4 - 2.7 - 1e-4);
  EXPECT_LT(least[0], 4 - 2.5);
  EXPECT_LE(most[0], 4 - 0.9 + 1e-4);
  EXPECT_GT(most[0], 4 - 1.1);
  EXPECT_GE(least[1], 4 - 1.8 - 1e-4);
  EXPECT_LT(least[1], 4 - 1.6);
  EXPECT_LE(most[1], 4 + 1.8 + 1e-4);
  EXPECT_GT(most[1], 4 + 1.6);
}

TEST(RandomTransforms, ACropIsAnyPartOfTheImageWithEqualProbability) {
  const Batch batch{64, 5};
  std::vector<int> count(9);
  for (int64_t step = 1; step <= 8; ++step) {
    const Trained trained =
        TrainOnPositions(layers::RandomCrop{.height = 3, .width = 3}, batch, step);
    for (size_t image = 0; image < 64; ++image) {
      const auto at = [&](size_t row, size_t column, size_t channel) {
        return trained.y[((image * 3 + row) * 3 + column) * 2 + channel];
      };
      const float top = at(0, 0, 0), left = at(0, 0, 1);
      ASSERT_TRUE(top >= 0 && top <= 2 && left >= 0 && left <= 2) << top << " " << left;
      ++count[static_cast<size_t>(top * 3 + left)];
      for (size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(at(i / 3, i % 3, 0), top + static_cast<float>(i / 3));
        EXPECT_EQ(at(i / 3, i % 3, 1), left + static_cast<float>(i % 3));
      }
    }
  }
  for (const int times : count) {  // 512 / 9 = 57 are expected
    EXPECT_GT(times, 30);
    EXPECT_LT(times, 90);
  }
}

TEST(RandomTransforms, ACropOfASmallerImageIsResized) {
  const Batch batch{1, 4};
  const Trained trained = TrainOnPositions(layers::RandomCrop{.height = 8, .width = 4}, batch, 1);
  // The two columns in the middle have an aspect ratio of 8:4.
  for (size_t i = 0; i < 32; ++i) {
    const double row = (static_cast<double>(i / 4) + 0.5) / 2 - 0.5;
    const double column = 1 + (static_cast<double>(i % 4) + 0.5) / 2 - 0.5;
    EXPECT_NEAR(trained.y[2 * i], std::clamp(row, 0.0, 3.0), 1e-5);
    EXPECT_NEAR(trained.y[2 * i + 1], std::clamp(column, 1.0, 2.0), 1e-5);
  }
}

// Returns how many of 64 images [1,2,3] are changed. Checks that every changed image equals
// `expected`, and that all other images are unchanged.
int Changed(const LayerConfig& layer, const Values& image, const Values& expected) {
  Values x;
  for (int i = 0; i < 64; ++i) x.insert(x.end(), image.begin(), image.end());
  const Trained trained = Train(layer, {64, 1, 2, 3}, x, 1);
  int changed = 0;
  for (size_t i = 0; i < x.size(); i += 6) {
    const Values got(trained.y.begin() + static_cast<std::ptrdiff_t>(i),
                     trained.y.begin() + static_cast<std::ptrdiff_t>(i) + 6);
    bool equal = true;
    for (size_t at = 0; at < 6; ++at) equal &= std::fabs(got[at] - expected[at]) < 1e-4;
    changed += equal;
    EXPECT_TRUE(equal || got == image) << "image " << i / 6;
  }
  return changed;
}

TEST(RandomColours, AreChangedWithTheGivenProbability) {
  const Values image = {10, 20, 30, 100, 0, 50}, inverted = {245, 235, 225, 155, 255, 205};
  EXPECT_EQ(Changed(layers::RandomInvert{.factor = {1, 1}}, image, inverted), 64);
  EXPECT_EQ(Changed(layers::RandomInvert{.factor = {0, 0}}, image, inverted), 0);
  for (const Factor& factor : {Factor{0, 1}, Factor{1}}) {  // a single number is the upper bound
    const int inversions = Changed(layers::RandomInvert{.factor = factor}, image, inverted);
    EXPECT_GT(inversions, 16);
    EXPECT_LT(inversions, 48);
  }
  const float first = 10 * 0.2989F + 20 * 0.587F + 30 * 0.114F,
              second = 100 * 0.2989F + 50 * 0.114F;
  const Values grey = {first, first, first, second, second, second};
  EXPECT_EQ(Changed(layers::RandomGrayscale{.factor = 1}, image, grey), 64);
  EXPECT_EQ(Changed(layers::RandomGrayscale{.factor = 0}, image, grey), 0);
  const int greys = Changed(layers::RandomGrayscale{}, image, grey);
  EXPECT_GT(greys, 16);
  EXPECT_LT(greys, 48);
}

std::string RefusalOf(const LayerConfig& layer, const Shape& in) {
  const TensorType type{DType::kFloat32, in};
  return std::string(layer.OutputTypes({&type, 1}).status().message());
}

TEST(RandomTransforms, RefuseFactorsOutsideOfTheirBounds) {
  const Shape image = {4, 4, 3};
  const Factor one = {0.5};
  EXPECT_EQ(RefusalOf(layers::RandomTranslation{one, {1.5}}, image),
            "width_factor: expected a number, or two, from -1 to 1, got [1.5]");
  EXPECT_EQ(RefusalOf(layers::RandomTranslation{{}, one}, image),
            "height_factor: expected a number, or two, from -1 to 1, got []");
  EXPECT_EQ(RefusalOf(layers::RandomRotation{{0.1, 0.2, 0.3}}, image),
            "factor: expected a number, or two, from -1 to 1, got [0.1, 0.2, 0.3]");
  EXPECT_EQ(RefusalOf(layers::RandomZoom{one, {-2, 0}}, image),
            "width_factor: expected a number, or two, from -1 to 1, got [-2, 0]");
  EXPECT_EQ(RefusalOf(layers::RandomZoom{{0, -1}}, image),
            "height_factor: expected numbers above -1, got -1");
  EXPECT_EQ(RefusalOf(layers::RandomShear{{-0.5}, one}, image),
            "x_factor: expected a number, or two, from 0 to 1, got [-0.5]");
  EXPECT_EQ(RefusalOf(layers::RandomInvert{{-0.5}}, image),
            "factor: expected a number, or two, from 0 to 1, got [-0.5]");
  EXPECT_EQ(RefusalOf(layers::RandomGrayscale{}, {4, 4, 2}),
            "expected images with 1 or 3 channels, got [4,4,2]");
  EXPECT_EQ(RefusalOf(layers::RandomRotation{one}, {4, 4}),
            "expected examples of shape [height,width,channels], got [4,4]");
}

}  // namespace
}  // namespace tfjob::model
