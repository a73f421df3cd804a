// Compares the gradients of layers, and of functions of keras.ops, with finite differences of their
// values.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layers/adaptive_pooling.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/operations/operation.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;
using Numbers = std::vector<double>;
// Appends ops to a graph with the given inputs. Returns the results.
using Function = std::function<std::vector<Output>(Builder&, const std::vector<Output>&)>;

constexpr int64_t kExamples = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns distinct numbers between -1 and 1. None of them is close to 0 or to another number.
Numbers Different(const Shape& shape) {
  constexpr double kScale = 0.913;  // no sum of differences is 1, where Sparsemax's gradient jumps
  Numbers numbers(static_cast<size_t>(shape.num_elements()));
  const auto count = static_cast<int64_t>(numbers.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = (i * 7919 + 13) % count;  // 7919 is a prime number
    numbers[static_cast<size_t>(i)] =
        kScale * (static_cast<double>(2 * place - count) + 0.5) / static_cast<double>(count);
  }
  return numbers;
}

// Computes the values of a function, and the gradients of Σ weight·value, where all weights are
// different.
class Differentiated {
 public:
  Differentiated(const Function& function, const std::vector<Shape>& shapes) {
    Builder b;
    std::vector<Output> inputs;
    for (const Shape& shape : shapes)
      inputs.push_back(
          graph::Placeholder(b, StrCat("input_", inputs.size()), DType::kFloat64, shape));
    Output loss;
    for (const Output result : function(b, inputs)) {
      Tensor weights(DType::kFloat64, b.shape(result));
      for (double& weight : weights.data<double>()) weight = Weight(weights_++);
      const Output part =
          graph::Sum(b, graph::Mul(b, result, graph::Const(b, std::move(weights))), {});
      b.AddFetch(StrCat("result_", results_++), graph::Identity(b, result));
      loss = loss.valid() ? graph::Add(b, loss, part) : part;
    }
    const std::vector<Output> gradients = graph::Gradients(b, loss, inputs);
    for (size_t i = 0; i < gradients.size(); ++i) b.AddFetch(StrCat("gradient_", i), gradients[i]);
    b.AddFetch("loss", loss);
    auto graph = std::move(b).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return;
    auto program = exec::Compile(*graph, store_, TestDevice());
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }

  // Returns the weight of value `i`, counted over all results.
  static double Weight(size_t i) { return std::cos(static_cast<double>(i)) + 0.1; }

  bool ok() const { return program_ != nullptr; }
  void Run(const std::vector<Numbers>& inputs) {
    std::vector<exec::Feed> feeds;
    for (const Numbers& input : inputs)
      feeds.push_back(exec::Feed::Of(std::span<const double>(input)));
    EXPECT_EQ(program_->Run(feeds), OkStatus());
  }
  Numbers Get(const std::string& fetch) const {
    const auto values = program_->Fetch<double>(program_->FindFetch(fetch));
    return {values.begin(), values.end()};
  }

 private:
  variables::VariableStore store_ = TestStore();
  std::unique_ptr<exec::Program> program_;
  size_t weights_ = 0, results_ = 0;
};

void ExpectGradients(const Function& function, const std::vector<Shape>& shapes) {
  Differentiated differentiated(function, shapes);
  ASSERT_TRUE(differentiated.ok());
  std::vector<Numbers> inputs;
  for (const Shape& shape : shapes) inputs.push_back(Different(shape));
  differentiated.Run(inputs);
  std::vector<Numbers> gradients;
  for (size_t i = 0; i < inputs.size(); ++i)
    gradients.push_back(differentiated.Get(StrCat("gradient_", i)));
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t at = 0; at < inputs[i].size(); ++at) {
      const double value = inputs[i][at];
      inputs[i][at] = value + kStep;
      differentiated.Run(inputs);
      const double above = differentiated.Get("loss")[0];
      inputs[i][at] = value - kStep;
      differentiated.Run(inputs);
      const double slope = (above - differentiated.Get("loss")[0]) / (2 * kStep);
      inputs[i][at] = value;
      EXPECT_NEAR(gradients[i][at], slope, 1e-6 * (1 + std::abs(slope))) << i << " " << at;
    }
  }
}

// Checks the gradients of a layer with respect to inputs and variables. `example` is the shape of
// an example of the first input. `states` contains the shapes of all other inputs.
void ExpectLayerGradients(const LayerConfig& config, const Shape& example,
                          const std::vector<Shape>& states = {}) {
  std::vector<TensorType> in = {{DType::kFloat64, example}};
  for (const Shape& state : states) in.push_back({DType::kFloat64, state});
  const auto types = config.OutputTypes(in);
  ASSERT_TRUE(types.ok()) << types.status();
  std::vector<Shape> shapes;
  for (const TensorType& type : in) shapes.push_back(Batched(kExamples, type.shape));
  for (const VariableSpec& variable : config.Variables(in)) shapes.push_back(variable.shape);
  const auto inputs = static_cast<std::ptrdiff_t>(in.size());
  const Function apply = [&](Builder& b, const std::vector<Output>& all) {
    LayerCall call{.b = b,
                   .inputs = {all.begin(), all.begin() + inputs},
                   .variables = {all.begin() + inputs, all.end()}};
    const std::vector<Output> results = config.Apply(call);
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(b.shape(results[i]), Batched(kExamples, (*types)[i].shape));
    return results;
  };
  ExpectGradients(apply, shapes);
}

TEST(LayerGradients, ConvolutionOfVolumes) {
  layers::Conv3D layer;
  layer.filters = 2;
  layer.groups = 2;
  for (const auto& [size, stride, dilation] :
       std::vector<std::array<int64_t, 3>>{{3, 2, 1}, {2, 1, 2}, {1, 3, 1}, {2, 9, 1}, {5, 2, 1}}) {
    for (const layers::PaddingKind padding :
         {layers::PaddingKind::kValid, layers::PaddingKind::kSame}) {
      SCOPED_TRACE(StrCat("size ", size, ", stride ", stride));
      layer.window = {.size = {size, 2, 1},
                      .strides = {stride, 1, 1},
                      .dilations = {dilation, 1, 1},
                      .padding = padding};
      ExpectLayerGradients(layer, {5, 2, 2, 2});
    }
  }
}

TEST(LayerGradients, TransposedConvolutionOfVolumes) {
  layers::Conv3DTranspose layer;
  layer.filters = 2;
  for (const auto& [size, stride] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 2}, {2, 3}, {2, 2}, {7, 1}}) {
    for (const layers::PaddingKind padding :
         {layers::PaddingKind::kValid, layers::PaddingKind::kSame}) {
      SCOPED_TRACE(StrCat("size ", size, ", stride ", stride));
      layer.window.size = {size, 2, 1};
      layer.window.strides = {stride, 1, 1};
      layer.window.padding = padding;
      ExpectLayerGradients(layer, {3, 2, 1, 1});
    }
  }
}

TEST(LayerGradients, PoolingOfVolumesAndIntoOverlappingWindows) {
  layers::MaxPooling3D max;
  max.window = {.size = {2, 3, 2}, .strides = {1, 2, 1}, .padding = layers::PaddingKind::kSame};
  ExpectLayerGradients(max, {3, 4, 2, 2});
  layers::AveragePooling3D average;
  average.window = max.window;
  ExpectLayerGradients(average, {3, 4, 2, 2});
  ExpectLayerGradients(layers::AdaptiveMaxPooling2D{.output_size = {3, 2}}, {5, 3, 2});
  ExpectLayerGradients(layers::AdaptiveAveragePooling3D{.output_size = {2, 1, 3}}, {3, 2, 4, 1});
}

TEST(LayerGradients, RecurrentConvolutions) {
  layers::ConvLSTM1D row;
  row.filters = 2;
  row.window.size = {3};
  row.window.strides = {2};
  row.return_sequences = true;
  row.return_state = true;
  ExpectLayerGradients(row, {3, 5, 2});
  layers::ConvLSTM2D image;
  image.filters = 1;
  image.window.size = {2, 2};
  image.window.padding = layers::PaddingKind::kSame;
  image.go_backwards = true;
  image.inputs.initial_state = {1, 2};
  ExpectLayerGradients(image, {2, 3, 2, 1}, {{3, 2, 1}, {3, 2, 1}});
}

// Returns a function of keras.ops with one operand.
layers::Operation MakeUnary(std::string_view module, std::string_view class_name) {
  std::optional<layers::Operation> operation =
      layers::MakeOperation(StrCat("keras.src.ops.", module), class_name);
  EXPECT_TRUE(operation) << class_name;
  operation->operands = {{.input = 0}};
  return *operation;
}

Function Applied(const layers::Operation& operation) {
  return [operation](Builder& b, const std::vector<Output>& inputs) {
    LayerCall call{.b = b, .inputs = inputs};
    return operation.Apply(call);
  };
}

TEST(OperationGradients, OfFunctionsAlongAxes) {
  for (const char* const name : {"Softmax", "LogSoftmax", "Sparsemax"}) {
    SCOPED_TRACE(name);
    layers::Operation operation = MakeUnary("nn", name);
    operation.axis = 1;
    ExpectGradients(Applied(operation), {{kExamples, 3, 2}});
  }
  for (const int64_t order : {1, 2}) {
    layers::Operation normalize = MakeUnary("nn", "Normalize");
    normalize.axes = {1};
    normalize.order = order;
    ExpectGradients(Applied(normalize), {{kExamples, 3, 2}});
  }
  for (const char* const name : {"Var", "Std"}) {
    layers::Operation operation = MakeUnary("numpy", name);
    operation.axes = {1, 2};
    ExpectGradients(Applied(operation), {{kExamples, 3, 2}});
  }
  layers::Operation sum = MakeUnary("math", "Logsumexp");
  sum.axes = {1};
  ExpectGradients(Applied(sum), {{kExamples, 3, 2}});
}

TEST(OperationGradients, OfRearrangements) {
  layers::Operation flip = MakeUnary("numpy", "Flip");
  flip.axes = {1, -1};
  ExpectGradients(Applied(flip), {{kExamples, 3, 2}});
  layers::Operation roll = MakeUnary("numpy", "Roll");
  roll.axis = 1;
  roll.count = 4;
  ExpectGradients(Applied(roll), {{kExamples, 3, 2}});
  layers::Operation tile = MakeUnary("numpy", "Tile");
  tile.repeats = {2, 3};
  ExpectGradients(Applied(tile), {{kExamples, 3, 2}});
  layers::Operation repeat = MakeUnary("numpy", "Repeat");
  repeat.axis = 1;
  repeat.count = 2;
  ExpectGradients(Applied(repeat), {{kExamples, 3, 2}});
  layers::Operation move = MakeUnary("numpy", "Moveaxis");
  move.source = {1};
  move.destination = {-1};
  ExpectGradients(Applied(move), {{kExamples, 3, 2}});
}

// Checks the result as well as the gradients: it must equal x[:, 1::step] in NumPy.
TEST(OperationGradients, OfSlicesWithSteps) {
  for (const int64_t step : {1, 2, 3, 4, 1'000'000'000}) {
    SCOPED_TRACE(step);
    layers::Operation item = MakeUnary("numpy", "GetItem");
    item.key = {KeyPart{}, KeyPart{.start = 1, .step = step}};
    const Shape shape = {kExamples, 6, 2};
    ExpectGradients(Applied(item), {shape});
    Differentiated differentiated(Applied(item), {shape});
    const Numbers x = Different(shape);
    differentiated.Run({x});
    Numbers expected;
    for (size_t n = 0; n < kExamples; ++n) {
      for (size_t row = 1; row < 6; row += static_cast<size_t>(step))
        expected.insert(expected.end(), {x[(n * 6 + row) * 2], x[(n * 6 + row) * 2 + 1]});
    }
    EXPECT_EQ(differentiated.Get("result_0"), expected);
  }
}

TEST(OperationGradients, OfProductsAndNorms) {
  for (const int64_t axis : {1, 2}) {
    layers::Operation product = MakeUnary("numpy", "Prod");
    product.axes = {axis};
    ExpectGradients(Applied(product), {{kExamples, 3, 2}});
    layers::Operation norm = MakeUnary("linalg", "Norm");
    norm.axes = {axis};
    for (const double order : {1, 2, 3}) {
      norm.order_of_norm = order;
      ExpectGradients(Applied(norm), {{kExamples, 3, 2}});
    }
  }
  layers::Operation product = MakeUnary("numpy", "Prod");
  product.axes = {1};
  Differentiated differentiated(Applied(product), {{2, 3}});
  differentiated.Run({{2, 0, 3, 0, 0, 5}});
  EXPECT_EQ(differentiated.Get("result_0"), (Numbers{0, 0}));
  const Numbers gradient = differentiated.Get("gradient_0");
  EXPECT_EQ(gradient, (Numbers{0, 6 * Differentiated::Weight(0), 0, 0, 0, 0}))
      << "a product has a gradient even if a factor is 0";
}

TEST(OperationGradients, OfSelections) {
  layers::Operation take = MakeUnary("numpy", "Take");
  take.axis = 1;
  take.operands.push_back({.integer = true, .array = {2, 0, -1, 2}, .dims = {2, 2}});
  ExpectGradients(Applied(take), {{kExamples, 3, 2}});
  layers::Operation slice = MakeUnary("core", "Slice");
  slice.newshape = {-1, 2, -1};
  for (const int64_t start : {0, 1, 1})
    slice.key.push_back({.kind = KeyPart::Kind::kIndex, .index = start});
  ExpectGradients(Applied(slice), {{kExamples, 3, 2}});
  layers::Operation split = MakeUnary("numpy", "Split");
  split.axis = 1;
  split.indices = {1, 1, 4};
  ExpectGradients(Applied(split), {{kExamples, 5}});
}

// Checks the result as well as the gradients: it must equal x[:, 4:0:-step] in NumPy.
TEST(OperationGradients, OfSlicesWithNegativeSteps) {
  for (const int64_t step : {1, 2, 3, 4, 1'000'000'000}) {
    SCOPED_TRACE(step);
    layers::Operation item = MakeUnary("numpy", "GetItem");
    item.key = {KeyPart{}, KeyPart{.start = -2, .stop = 0, .step = -step}};
    const Shape shape = {kExamples, 6};
    ExpectGradients(Applied(item), {shape});
    Differentiated differentiated(Applied(item), {shape});
    const Numbers x = Different(shape);
    differentiated.Run({x});
    Numbers expected;
    for (size_t n = 0; n < kExamples; ++n) {
      for (int64_t column = 4; column > 0; column -= step)
        expected.push_back(x[n * 6 + static_cast<size_t>(column)]);
    }
    EXPECT_EQ(differentiated.Get("result_0"), expected);
  }
}

TEST(OperationGradients, OfRemaindersAndLogarithms) {
  layers::Operation remainder = MakeUnary("numpy", "Mod");
  remainder.operands.push_back({.number = 0.7});
  ExpectGradients(Applied(remainder), {{kExamples, 4}});
  ExpectGradients(Applied(MakeUnary("numpy", "Log1p")), {{kExamples, 4}});
  ExpectGradients(Applied(MakeUnary("numpy", "Expm1")), {{kExamples, 4}});
  layers::Operation round = MakeUnary("numpy", "Round");
  Differentiated differentiated(Applied(round), {{1, 4}});
  differentiated.Run({{-0.4, 1.3, 2.6, 7}});
  EXPECT_EQ(differentiated.Get("gradient_0"), (Numbers{0, 0, 0, 0}));
}

// Rows of zeros are common: they are produced by ReLU, and used to pad sequences.
TEST(OperationGradients, OfANormalizedRowOfZerosAreFinite) {
  layers::Operation normalize = MakeUnary("nn", "Normalize");
  normalize.axes = {-1};
  for (const double epsilon : {1e-6, 0.25}) {
    normalize.epsilon = epsilon;
    Differentiated differentiated(Applied(normalize), {{2, 2}});
    differentiated.Run({{0, 0, 3, 4}});
    const Numbers result = differentiated.Get("result_0"), expected_result = {0, 0, 0.6, 0.8};
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(result[i], expected_result[i], 1e-15) << i;
    const Numbers gradient = differentiated.Get("gradient_0");
    for (size_t i = 0; i < 2; ++i) {
      const double expected = Differentiated::Weight(i) / epsilon;
      EXPECT_NEAR(gradient[i], expected, 1e-9 * std::abs(expected));
    }
  }
  for (const double tiny : {0.0, 1e-200}) {
    normalize.epsilon = tiny;
    Differentiated differentiated(Applied(normalize), {{1, 2}});
    differentiated.Run({{0, 0}});
    EXPECT_EQ(differentiated.Get("result_0"), (Numbers{0, 0})) << tiny;
  }
}

// NaN and numbers that are too large for an integer must not change.
TEST(OperationValues, OfRoundedNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto of = [&](const char* name, const Numbers& x) {
    Differentiated differentiated(Applied(MakeUnary("numpy", name)),
                                  {{1, static_cast<int64_t>(x.size())}});
    differentiated.Run({x});
    return differentiated.Get("result_0");
  };
  const Numbers large = {1e30, -1e30, kInfinity, -kInfinity, 0x1p53, -0x1p52 - 1};
  for (const char* const name : {"Floor", "Ceil", "Round"}) {
    EXPECT_EQ(of(name, large), large) << name;
    EXPECT_TRUE(std::isnan(of(name, {nan})[0])) << name;
  }
  EXPECT_EQ(of("Floor", {-1.5, -1, -0.25, 0.75, 2}), (Numbers{-2, -1, -1, 0, 2}));
  EXPECT_EQ(of("Ceil", {-1.5, -1, 0.25, 0.75, 2}), (Numbers{-1, -1, 1, 1, 2}));
  EXPECT_EQ(of("Round", {-2.5, -1.5, -0.75, 0.5, 1.5, 2.5, 0.25}),
            (Numbers{-2, -2, -1, 0, 2, 2, 0}));
  EXPECT_EQ(of("Sign", {-kInfinity, -0.5, 0, 3}), (Numbers{-1, -1, 0, 1}));
  EXPECT_TRUE(std::isnan(of("Sign", {nan})[0]));
}

TEST(OperationValues, OfRemaindersHaveTheSignOfTheDivisor) {
  const auto of = [](const char* name, double divisor) {
    layers::Operation operation = MakeUnary("numpy", name);
    operation.operands.push_back({.number = divisor});
    Differentiated differentiated(Applied(operation), {{1, 6}});
    differentiated.Run({{-4, -3, -0.5, 0, 2, 4}});
    return differentiated.Get("result_0");
  };
  EXPECT_EQ(of("Mod", 3), (Numbers{2, 0, 2.5, 0, 2, 1}));
  EXPECT_EQ(of("Mod", -3), (Numbers{-1, 0, -0.5, 0, -1, -2}));
  EXPECT_EQ(of("FloorDivide", 3), (Numbers{-2, -1, -1, 0, 0, 1}));
  EXPECT_EQ(of("FloorDivide", -3), (Numbers{1, 1, 0, 0, -1, -2}));
}

TEST(OperationValues, UseTheArgument) {
  const auto of = [](const char* name, double argument) {
    layers::Operation operation = MakeUnary("nn", name);
    operation.threshold = operation.b = argument;
    Differentiated differentiated(Applied(operation), {{1, 4}});
    differentiated.Run({{-2, -0.75, 0.25, 1}});
    return differentiated.Get("result_0");
  };
  EXPECT_EQ(of("HardShrink", 0.75), (Numbers{-2, 0, 0, 1}));
  EXPECT_EQ(of("SoftShrink", 0.75), (Numbers{-1.25, 0, 0, 0.25}));
  EXPECT_EQ(of("Squareplus", 0), (Numbers{0, 0, 0.25, 1}));
}

TEST(OperationValues, TheLogOfASumOfInfiniteElements) {
  layers::Operation sum = MakeUnary("math", "Logsumexp");
  sum.axes = {-1};
  Differentiated differentiated(Applied(sum), {{5, 2}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  differentiated.Run({{-kInfinity, -kInfinity, kInfinity, 1, -kInfinity, 1, 1000, 1000, nan, 1}});
  const Numbers result = differentiated.Get("result_0");
  EXPECT_EQ(result[0], -kInfinity);
  EXPECT_EQ(result[1], kInfinity);
  EXPECT_EQ(result[2], 1);
  EXPECT_DOUBLE_EQ(result[3], 1000 + std::log(2));
  EXPECT_TRUE(std::isnan(result[4]));
}

}  // namespace
}  // namespace tfjob::model
