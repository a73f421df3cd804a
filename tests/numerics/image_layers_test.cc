// Compares layers over images with plain loops in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/model/layers/adaptive_pooling.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/layers/resize.h"
#include "runtime/model/shape.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr int64_t kHeight = 5, kWidth = 4, kChannels = 4;

// Contains the values of several images. Positions outside an image have the value 0.
struct Images {
  int64_t height = kHeight, width = kWidth, channels = kChannels;
  Values values = {};

  size_t Index(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return static_cast<size_t>(((n * height + y) * width + x) * channels + c);
  }
  double At(int64_t n, int64_t y, int64_t x, int64_t c) const {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? values[Index(n, y, x, c)] : 0;
  }
};

Images Input() {
  Images images;
  images.values.resize(static_cast<size_t>(kBatch * kHeight * kWidth * kChannels));
  for (size_t i = 0; i < images.values.size(); ++i)
    images.values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
  return images;
}

Images Outputs(LayerConfig config, const Images& in, const Shape& out) {
  const Model model = Sequential(
      "m", {{.name = "image",
             .config = layers::Reshape{.target_shape = {in.height, in.width, in.channels}}},
            {.name = "layer", .config = std::move(config)}});
  return {out.dim(0), out.dim(1), out.dim(2),
          OneRun(model, Mode::kPredict, {in.values}).Get(kPrediction)};
}

// Compares each value of `got` with expected(image, row, column, channel).
void Expect(const Images& got,
            const std::function<double(int64_t, int64_t, int64_t, int64_t)>& expected) {
  ASSERT_EQ(got.values.size(), got.Index(kBatch, 0, 0, 0));
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t y = 0; y < got.height; ++y) {
      for (int64_t x = 0; x < got.width; ++x) {
        for (int64_t c = 0; c < got.channels; ++c)
          EXPECT_NEAR(got.At(n, y, x, c), expected(n, y, x, c), 1e-5) << y << " " << x << " " << c;
      }
    }
  }
}

// Returns elements of the initial value of a layer's kernel, by their indices.
class Kernel {
 public:
  Kernel(const char* name, const Shape& shape)
      : shape_(shape),
        value_(InitialValue(Initializer::GlorotUniform(), DType::kFloat32, shape, 1,
                            StrCat("layer/", name))) {}

  double At(int64_t y, int64_t x, int64_t in, int64_t out) const {
    const int64_t i = ((y * shape_.dim(1) + x) * shape_.dim(2) + in) * shape_.dim(3) + out;
    return value_.data<float>()[static_cast<size_t>(i)];
  }

 private:
  Shape shape_;
  Tensor value_;
};

const Initializer kHalf{.kind = Initializer::Kind::kConstant, .value = 0.5};

TEST(ImageLayers, ConvolutionOfGroupsWithStridesAndBias) {
  const Images in = Input();
  layers::Conv2D layer;
  layer.filters = 6;
  layer.groups = 2;
  layer.window = {.size = {3, 2}, .strides = {2, 1}, .dilations = {1, 1}};
  layer.activation = ActivationKind::kRelu;
  layer.bias_initializer = kHalf;
  const Kernel kernel("kernel", {3, 2, 2, 6});
  Expect(Outputs(layer, in, {2, 3, 6}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    double sum = 0.5;
    for (int64_t i = 0; i < 3 * 2 * 2; ++i) {
      const int64_t ky = i / 4, kx = i / 2 % 2, k = i % 2;
      sum += in.At(n, 2 * y + ky, x + kx, c / 3 * 2 + k) * kernel.At(ky, kx, k, c);
    }
    return std::max(sum, 0.0);
  });
}

TEST(ImageLayers, DilatedConvolutionThatKeepsTheSize) {
  const Images in = Input();
  layers::Conv2D layer;
  layer.filters = 2;
  layer.use_bias = false;
  layer.window = {.size = {3, 3},
                  .strides = {1, 1},
                  .dilations = {2, 2},
                  .padding = layers::PaddingKind::kSame};
  const Kernel kernel("kernel", {3, 3, 4, 2});
  Expect(Outputs(layer, in, {kHeight, kWidth, 2}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < 3 * 3 * 4; ++i) {
      const int64_t ky = i / 12, kx = i / 4 % 3, k = i % 4;
      sum += in.At(n, y + 2 * ky - 2, x + 2 * kx - 2, k) * kernel.At(ky, kx, k, c);
    }
    return sum;
  });
}

TEST(ImageLayers, DepthwiseConvolutionWithStridesAndDilations) {
  const Images in = Input();
  layers::DepthwiseConv2D layer;
  layer.use_bias = false;
  layer.window = {.size = {2, 2}, .strides = {2, 1}, .dilations = {2, 2}};
  const Kernel kernel("kernel", {2, 2, kChannels, 1});
  Expect(Outputs(layer, in, {2, 2, kChannels}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t ky = i / 2, kx = i % 2;
      sum += in.At(n, 2 * y + 2 * ky, x + 2 * kx, c) * kernel.At(ky, kx, c, 0);
    }
    return sum;
  });
}

TEST(ImageLayers, CausalConvolutionSeesNoLaterStep) {
  Images in = Input();  // the layer treats the images as rows of 20 steps
  const Model model = Sequential("m", {{.name = "row", .config = layers::Reshape{{20, 4}}},
                                       {.name = "layer", .config = [] {
                                          layers::Conv1D layer;
                                          layer.filters = 3;
                                          layer.window = {.size = {2},
                                                          .strides = {1},
                                                          .dilations = {3},
                                                          .padding = layers::PaddingKind::kCausal};
                                          return layer;
                                        }()}});
  const Tensor value =
      InitialValue(Initializer::GlorotUniform(), DType::kFloat32, {2, 4, 3}, 1, "layer/kernel");
  const Values got = OneRun(model, Mode::kPredict, {in.values}).Get(kPrediction);
  ASSERT_EQ(got.size(), static_cast<size_t>(kBatch * 20 * 3));
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t c = i % 3, step = i / 3 % 20, n = i / 60;
    double sum = 0;
    for (size_t k = 0; k < 8; ++k) {
      const size_t back = k < 4 ? 3 : 0;
      if (step < back) continue;
      sum += in.values[(n * 20 + step - back) * 4 + k % 4] *
             static_cast<double>(value.data<float>()[k * 3 + c]);
    }
    EXPECT_NEAR(got[i], sum, 1e-5) << i;
  }
}

TEST(ImageLayers, DepthwiseAndSeparableConvolution) {
  const Images in = Input();
  layers::DepthwiseConv2D depthwise;
  depthwise.depth_multiplier = 2;
  depthwise.window.size = {2, 2};
  depthwise.bias_initializer = kHalf;
  const auto convolve = [&](const Kernel& kernel, int64_t n, int64_t y, int64_t x, int64_t c) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k)
      sum += in.At(n, y + k / 2, x + k % 2, c / 2) * kernel.At(k / 2, k % 2, c / 2, c % 2);
    return sum;
  };
  const Kernel kernel("kernel", {2, 2, 4, 2});
  Expect(Outputs(depthwise, in, {4, 3, 8}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    return convolve(kernel, n, y, x, c) + 0.5;
  });
  layers::SeparableConv2D separable;
  separable.filters = 3;
  separable.depth_multiplier = 2;
  separable.window.size = {2, 2};
  separable.bias_initializer = kHalf;
  const Kernel each("depthwise_kernel", {2, 2, 4, 2}), mix("pointwise_kernel", {1, 1, 8, 3});
  Expect(Outputs(separable, in, {4, 3, 3}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    double sum = 0.5;
    for (int64_t k = 0; k < 8; ++k) sum += convolve(each, n, y, x, k) * mix.At(0, 0, k, c);
    return sum;
  });
}

TEST(ImageLayers, TransposedConvolutionSpreadsEachInput) {
  const Images in = Input();
  layers::Conv2DTranspose layer;
  layer.filters = 2;
  layer.window.size = {3, 2};
  layer.window.strides = {2, 3};
  layer.bias_initializer = kHalf;
  const Kernel kernel("kernel", {3, 2, 2, 4});
  Images sums{11, 12, 2, Values(static_cast<size_t>(kBatch * 11 * 12 * 2), 0.5f)};
  for (int64_t i = 0; i < kBatch * kHeight * kWidth * kChannels; ++i) {
    const int64_t k = i % 4, x = i / 4 % kWidth, y = i / 16 % kHeight, n = i / 80;
    for (int64_t t = 0; t < 3 * 2 * 2; ++t) {
      const int64_t ky = t / 4, kx = t / 2 % 2, c = t % 2;
      sums.values[sums.Index(n, 2 * y + ky, 3 * x + kx, c)] +=
          static_cast<float>(in.At(n, y, x, k) * kernel.At(ky, kx, c, k));
    }
  }
  Expect(Outputs(layer, in, {11, 12, 2}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) { return sums.At(n, y, x, c); });
}

TEST(ImageLayers, PoolingIgnoresPadding) {
  const Images in = Input();
  const auto window = [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    std::vector<double> seen;  // rows 2y and 2y + 1; columns x and x + 1
    for (int64_t k = 0; k < 4; ++k) {
      if (2 * y + k / 2 < kHeight && x + k % 2 < kWidth)
        seen.push_back(in.At(n, 2 * y + k / 2, x + k % 2, c));
    }
    return seen;
  };
  layers::MaxPooling2D max;
  max.window.strides = {2, 1};
  max.window.padding = layers::PaddingKind::kSame;
  layers::AveragePooling2D average;
  average.window = max.window;
  Expect(Outputs(max, in, {3, 4, 4}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    const std::vector<double> seen = window(n, y, x, c);
    return *std::ranges::max_element(seen);
  });
  Expect(Outputs(average, in, {3, 4, 4}), [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    const std::vector<double> seen = window(n, y, x, c);
    double sum = 0;
    for (const double value : seen) sum += value;
    return sum / static_cast<double>(seen.size());
  });
  Expect(Outputs(layers::MaxPooling2D{}, in, {2, 2, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) {
           const std::vector<double> seen = window(n, y, 2 * x, c);
           return *std::ranges::max_element(seen);
         });
}

TEST(ImageLayers, GlobalPooling) {
  const Images in = Input();
  const auto all = [&](int64_t n, int64_t c, const auto& add) {
    for (int64_t i = 0; i < kHeight * kWidth; ++i) add(in.At(n, i / kWidth, i % kWidth, c));
  };
  layers::GlobalMaxPooling2D max;
  max.keepdims = true;
  Expect(Outputs(max, in, {1, 1, 4}), [&](int64_t n, int64_t, int64_t, int64_t c) {
    double most = -2;
    all(n, c, [&](double value) { most = std::max(most, value); });
    return most;
  });
  Expect(Outputs(layers::GlobalAveragePooling2D{}, in, {1, 1, 4}),
         [&](int64_t n, int64_t, int64_t, int64_t c) {
           double sum = 0;
           all(n, c, [&](double value) { sum += value; });
           return sum / (kHeight * kWidth);
         });
}

TEST(ImageLayers, PaddingCroppingAndUpSampling) {
  const Images in = Input();
  Expect(Outputs(layers::ZeroPadding2D{.padding = {1, 2, 3, 0}}, in, {8, 7, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) { return in.At(n, y - 1, x - 3, c); });
  Expect(Outputs(layers::Cropping2D{.cropping = {1, 2, 0, 3}}, in, {2, 1, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) { return in.At(n, y + 1, x, c); });
  Expect(Outputs(layers::UpSampling2D{.size = {2, 3}}, in, {10, 12, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) { return in.At(n, y / 2, x / 3, c); });
}

// An element of the enlarged row lies between the centres of two elements. Beyond the first and the
// last centre, their values are repeated.
TEST(ImageLayers, UpSamplingInterpolates) {
  const Images in = Input();
  const auto row = [&](int64_t n, double y, int64_t x, int64_t c) {
    y = std::clamp<double>(y, 0, kHeight - 1);
    const auto above = static_cast<int64_t>(std::floor(y)),
               below = std::min(above + 1, kHeight - 1);
    return in.At(n, above, x, c) +
           (y - std::floor(y)) * (in.At(n, below, x, c) - in.At(n, above, x, c));
  };
  Expect(Outputs(layers::UpSampling2D{.size = {2, 1},
                                      .interpolation = layers::Interpolation::kBilinear},
                 in, {2 * kHeight, kWidth, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) {
           return row(n, (static_cast<double>(y) + 0.5) / 2 - 0.5, x, c);
         });
}

// The 5 rows have 3 windows: 0 to 1, 1 to 3, and 3 to 4. The 4 columns have 2 windows.
TEST(ImageLayers, AdaptivePooling) {
  const Images in = Input();
  constexpr int64_t kBegin[] = {0, 1, 3}, kEnd[] = {2, 4, 5};
  const auto seen = [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    std::vector<double> values;
    for (int64_t row = kBegin[y]; row < kEnd[y]; ++row)
      values.insert(values.end(), {in.At(n, row, 2 * x, c), in.At(n, row, 2 * x + 1, c)});
    return values;
  };
  Expect(Outputs(layers::AdaptiveMaxPooling2D{.output_size = {3, 2}}, in, {3, 2, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) {
           const std::vector<double> values = seen(n, y, x, c);
           return *std::ranges::max_element(values);
         });
  Expect(Outputs(layers::AdaptiveAveragePooling2D{.output_size = {3, 2}}, in, {3, 2, 4}),
         [&](int64_t n, int64_t y, int64_t x, int64_t c) {
           const std::vector<double> values = seen(n, y, x, c);
           return std::accumulate(values.begin(), values.end(), 0.0) /
                  static_cast<double>(values.size());
         });
}

// Neither an example nor a batch may have more than 2^40 elements. Here, the examples are small
// enough but the batch is not. This error is detected only when the graph is built.
TEST(ImageLayers, ABatchThatIsTooLargeIsAnError) {
  layers::Conv1DTranspose layer;
  layer.filters = 512;
  layer.window.strides = {76695844};
  const Model model =
      Sequential("m", {{.name = "layer", .config = layer},
                       {.name = "pool", .config = layers::GlobalAveragePooling1D{}}});
  BuildOptions options{.mode = Mode::kPredict, .batch_size = 100, .features = Features({28, 28})};
  const StatusOr<BuiltGraph> built = Build(model, options);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(Message(built.status()).find("at most 2^40 elements"), std::string::npos)
      << built.status();
}

TEST(ImageLayers, SayWhatDoesNotFit) {
  const auto refusal = [](const LayerConfig& config, const Shape& example) {
    const TensorType in{DType::kFloat32, example};
    return std::string(Message(config.OutputTypes(std::span(&in, 1)).status()));
  };
  layers::Conv2D convolution;
  convolution.filters = 4;
  convolution.window.size = {5, 5};
  EXPECT_EQ(refusal(convolution, {28, 28}),
            "expected examples of shape [height,width,channels], got [28,28]");
  EXPECT_EQ(refusal(convolution, {4, 28, 3}),
            "expected a height of at least 5 for a window of 5, got 4");
  convolution.groups = 2;
  EXPECT_EQ(refusal(convolution, {28, 28, 3}),
            "expected numbers of channels and of filters that 2 groups divide, got 3 and 4");
  convolution.window.strides = {2, 1};
  convolution.window.dilations = {2, 2};
  EXPECT_EQ(refusal(convolution, {28, 28, 4}),
            "expected strides or a dilation_rate above 1, got both");
  layers::DepthwiseConv2D many;
  many.depth_multiplier = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(refusal(many, {1, 1, int64_t{1} << 40}),
            "expected images [images,height,width,channels], got [1,1,1,1099511627776]");
  layers::Conv2DTranspose far;
  far.filters = 1;
  far.window.strides = {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max()};
  EXPECT_TRUE(refusal(far, {4, 4, 1}).starts_with("expected examples of shape")) << "2^66 elements";
  const std::vector<TensorType> inputs(1025, {DType::kFloat32, {1}});
  EXPECT_EQ(std::string(Message(layers::Concatenate{}.OutputTypes(inputs).status())),
            "expected 1 to 1024 inputs, got 1025");
  layers::Conv3D deep;
  deep.filters = 1;
  deep.window = {.size = {1025, 1, 1},
                 .strides = {1, 1, 1},
                 .dilations = {1, 1, 1},
                 .padding = layers::PaddingKind::kSame};
  EXPECT_EQ(refusal(deep, {2, 2, 2, 1}),
            "expected a kernel_size of at most 1024 along the depth, got 1025");
  EXPECT_EQ(refusal(deep, {2, 2, 1}),
            "expected examples of shape [depth,height,width,channels], got [2,2,1]");
  EXPECT_EQ(refusal(layers::MaxPooling1D{}, {3}),
            "expected examples of shape [steps,channels], got [3]");
  EXPECT_EQ(refusal(layers::Cropping1D{.cropping = {2, 1}}, {3, 2}),
            "expected a cropping below the 3 elements of axis 1, got 2 and 1");
}

}  // namespace
}  // namespace tfjob::model
