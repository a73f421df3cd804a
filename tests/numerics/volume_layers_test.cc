// Compares layers over volumes with plain loops in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "runtime/model/layers/adaptive_pooling.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/shape.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr int64_t kDepth = 4;
const Shape kVolume = {kDepth, 5, 3, 4};

// Returns element [depth,height,width,channel] of volume n, or 0 outside the volume.
double Voxel(const Values& values, const Shape& shape, int64_t n, std::array<int64_t, 4> at) {
  int64_t index = n;
  for (int axis = 0; axis < 4; ++axis) {
    const int64_t i = at[static_cast<size_t>(axis)];
    if (i < 0 || i >= shape.dim(axis)) return 0;
    index = index * shape.dim(axis) + i;
  }
  return values[static_cast<size_t>(index)];
}

Values VolumeInput() {
  Values values(static_cast<size_t>(kBatch * kVolume.num_elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
  return values;
}

// Compares the outputs of a layer over volumes with expected(n, [depth,height,width,channel]).
void ExpectVolume(LayerConfig config, const Shape& out,
                  const std::function<double(int64_t, std::array<int64_t, 4>)>& expected) {
  const Model model =
      Sequential("m", {{.name = "volume", .config = layers::Reshape{kVolume.dims()}},
                       {.name = "layer", .config = std::move(config)}});
  const Values got = OneRun(model, Mode::kPredict, {VolumeInput()}).Get(kPrediction);
  ASSERT_EQ(got.size(), static_cast<size_t>(kBatch * out.num_elements()));
  for (size_t i = 0; i < got.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    std::array<int64_t, 4> at;
    for (int axis = 3; axis >= 0; --axis) {
      at[static_cast<size_t>(axis)] = rest % out.dim(axis);
      rest /= out.dim(axis);
    }
    EXPECT_NEAR(got[i], expected(rest, at), 1e-5) << i;
  }
}

// Returns the initial kernel [depth,height,width,in,out] of the layer, as a function of the
// indices.
std::function<double(int64_t, int64_t, int64_t, int64_t, int64_t)> VolumeKernel(Shape shape) {
  const Tensor value =
      InitialValue(Initializer::GlorotUniform(), DType::kFloat32, shape, 1, "layer/kernel");
  return [=](int64_t d, int64_t y, int64_t x, int64_t in, int64_t out) -> double {
    const int64_t row = (d * shape.dim(1) + y) * shape.dim(2) + x;
    return value.data<float>()[static_cast<size_t>((row * shape.dim(3) + in) * shape.dim(4) + out)];
  };
}

TEST(VolumeLayers, ConvolutionOfVolumes) {
  const Values in = VolumeInput();
  for (const int64_t dilation : {1, 2}) {
    layers::Conv3D layer;
    layer.filters = 6;
    layer.groups = 2;
    layer.window = {.size = {3, 2, 1},
                    .strides = {dilation == 1 ? 2 : 1, 1, 1},
                    .dilations = {dilation, 1, 1},
                    .padding = layers::PaddingKind::kSame};
    layer.bias_initializer = {.kind = Initializer::Kind::kConstant, .value = 0.5};
    const int64_t stride = layer.window.strides[0], before = dilation == 1 ? 0 : 2;
    const auto kernel = VolumeKernel({3, 2, 1, 2, 6});
    ExpectVolume(layer, {kDepth / stride, 5, 3, 6}, [&](int64_t n, std::array<int64_t, 4> at) {
      double sum = 0.5;
      for (int64_t i = 0; i < 3 * 2 * 2; ++i) {
        const int64_t d = i / 4, y = i / 2 % 2, k = i % 2;
        sum +=
            Voxel(in, kVolume, n,
                  {stride * at[0] + d * dilation - before, at[1] + y, at[2], at[3] / 3 * 2 + k}) *
            kernel(d, y, 0, k, at[3]);
      }
      return sum;
    });
  }
}

TEST(VolumeLayers, TransposedConvolutionOfVolumes) {
  const Values in = VolumeInput();
  struct Case {
    int64_t size, stride, before, depth;  // `depth` is that of the output
    bool same;
  };
  // In the third case, most planes of the kernel do not cover any plane of the output. In the last
  // two cases, there are gaps between the windows.
  for (const Case& c : {Case{4, 2, 0, 10, false}, Case{4, 2, 1, 8, true}, Case{11, 1, 5, 4, true},
                        Case{2, 3, 0, 12, false}, Case{2, 3, 0, 12, true}}) {
    layers::Conv3DTranspose layer;
    layer.filters = 2;
    layer.window.size = {c.size, 2, 1};
    layer.window.strides = {c.stride, 1, 1};
    layer.window.padding = c.same ? layers::PaddingKind::kSame : layers::PaddingKind::kValid;
    const auto kernel = VolumeKernel({c.size, 2, 1, 2, 4});
    const Shape out = {c.depth, c.same ? 5 : 6, 3, 2};
    ExpectVolume(layer, out, [&](int64_t n, std::array<int64_t, 4> at) {
      double sum = 0;
      for (int64_t i = 0; i < c.size * 2 * 4; ++i) {
        const int64_t d = i / 8, y = i / 4 % 2, k = i % 4, from = at[0] + c.before - d;
        if (from % c.stride != 0) continue;
        sum += Voxel(in, kVolume, n, {from / c.stride, at[1] - y, at[2], k}) *
               kernel(d, y, 0, at[3], k);
      }
      return sum;
    });
  }
}

TEST(VolumeLayers, PoolingOfVolumes) {
  const Values in = VolumeInput();
  const auto seen = [&](int64_t n, std::array<int64_t, 4> at) {
    std::vector<double> values;  // planes d and d + 1, rows 2y to 2y + 2, columns x and x + 1
    for (int64_t i = 0; i < 2 * 3 * 2; ++i) {
      const std::array<int64_t, 4> from = {at[0] + i / 6, 2 * at[1] + i / 2 % 3 - 1, at[2] + i % 2,
                                           at[3]};
      const bool inside = from[0] < kDepth && from[1] >= 0 && from[1] < 5 && from[2] < 3;
      if (inside) values.push_back(Voxel(in, kVolume, n, from));
    }
    return values;
  };
  layers::MaxPooling3D max;
  max.window = {.size = {2, 3, 2}, .strides = {1, 2, 1}, .padding = layers::PaddingKind::kSame};
  layers::AveragePooling3D average;
  average.window = max.window;
  ExpectVolume(max, {kDepth, 3, 3, 4}, [&](int64_t n, std::array<int64_t, 4> at) {
    const std::vector<double> values = seen(n, at);
    return *std::ranges::max_element(values);
  });
  ExpectVolume(average, {kDepth, 3, 3, 4}, [&](int64_t n, std::array<int64_t, 4> at) {
    const std::vector<double> values = seen(n, at);
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  });
}

// The inputs and outputs have valid sizes, but an intermediate value would be too large.
TEST(VolumeLayers, AValueInBetweenThatIsTooLargeIsAnError) {
  layers::Conv3D convolution;
  convolution.filters = 1;
  convolution.window.size = {3, 1, 1};
  convolution.window.padding = layers::PaddingKind::kSame;
  layers::Conv3DTranspose transposed;
  transposed.filters = 1;
  transposed.window.size = {1024, 1, 1};
  transposed.window.padding = layers::PaddingKind::kSame;
  layers::ConvLSTM1D recurrent;
  recurrent.filters = 1;
  recurrent.activation = ActivationKind::kSparsemax;
  layers::ConvLSTM1D dropping = recurrent;
  dropping.dropout = 0.5;
  const std::pair<LayerConfig, Shape> kCases[] = {
      {convolution, {1, 1, 512, int64_t{1} << 30}},
      {transposed, {(int64_t{1} << 30) + 1, 1, 1, 1}},
      {layers::AdaptiveMaxPooling2D{.output_size = {1, 1}}, {1, 65536, 65536}},
      {recurrent, {int64_t{1} << 31, 1, 1}},
      {dropping, {int64_t{1} << 31, 1, 1}}};
  for (const auto& [config, example] : kCases) {
    const Model model = Sequential("m", {{.name = "layer", .config = config}});
    for (const Mode mode : {Mode::kPredict, Mode::kTrain}) {
      const BuildOptions options{
          .mode = mode,
          .batch_size = 1,
          .features = Features(example),
          .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                          .labels = (*OutputTypes(model, Features(example)))[0]}}};
      const StatusOr<BuiltGraph> built = Build(model, options);
      ASSERT_FALSE(built.ok()) << config.class_name();
      EXPECT_TRUE(Message(built.status()).starts_with("node layer/")) << built.status();
    }
  }
}

}  // namespace
}  // namespace tfjob::model
