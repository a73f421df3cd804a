// Compares every gradient function of the op table with central differences in float64.
#include "runtime/graph/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "runtime/exec/program.h"
#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/tensor/window.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using Inputs = std::vector<Output>;

constexpr DType kF64 = DType::kFloat64;
constexpr double kStep = 1e-6;

// A function of float64 inputs, whose values are drawn from [low, high].
struct Case {
  const char* op;
  std::vector<Shape> shapes;
  std::function<Output(Builder&, const Inputs&)> build;
  double low = -2;
  double high = 2;
};

Tensor Random(const Shape& shape, double low, double high, std::mt19937& random) {
  Tensor tensor(kF64, shape);
  std::uniform_real_distribution<double> values(low, high);
  for (double& value : tensor.data<double>()) value = values(random);
  return tensor;
}

double LossAt(Program& program, const std::vector<Tensor>& inputs) {
  std::vector<Feed> feeds;
  for (const Tensor& input : inputs) feeds.push_back(Feed::Of(input));
  const Status run = program.Run(feeds);
  EXPECT_TRUE(run.ok()) << run;
  return program.Fetch<double>(0)[0];
}

// The loss is a sum with random weights, so that symmetry does not hide any part of the gradient.
// The fetches are the loss, followed by the gradient of each input.
StatusOr<graph::Graph> LossAndGradients(const Case& test, std::mt19937& random) {
  Builder b;
  Inputs inputs;
  for (size_t i = 0; i < test.shapes.size(); ++i) {
    inputs.push_back(Placeholder(b, StrCat("input", i), kF64, test.shapes[i]));
  }
  const Output y = Cast(b, test.build(b, inputs), kF64);
  const Output loss = Sum(b, Mul(b, y, Const(b, Random(b.shape(y), -1, 1, random))), {});
  const std::vector<Output> gradients = Gradients(b, loss, inputs);
  b.AddFetch("loss", loss);
  for (size_t i = 0; i < gradients.size(); ++i) b.AddFetch(StrCat("gradient", i), gradients[i]);
  return std::move(b).Finish();
}

void CheckCase(const Case& test, bool optimize) {
  SCOPED_TRACE(test.op);
  std::mt19937 random(1);
  auto graph = LossAndGradients(test, random);
  ASSERT_TRUE(graph.ok()) << graph.status();
  variables::VariableStore store;
  CompileOptions options;
  options.optimize = optimize;
  auto program = Compile(*graph, store, CpuDevice(), options);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<Tensor> inputs;
  for (const Shape& shape : test.shapes)
    inputs.push_back(Random(shape, test.low, test.high, random));
  LossAt(**program, inputs);
  std::vector<std::vector<double>> gradients;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto values = (*program)->Fetch<double>(static_cast<int>(i) + 1);
    gradients.emplace_back(values.begin(), values.end());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto values = inputs[i].data<double>();
    for (size_t j = 0; j < values.size(); ++j) {
      const double value = values[j];
      values[j] = value + kStep;
      const double above = LossAt(**program, inputs);
      values[j] = value - kStep;
      const double below = LossAt(**program, inputs);
      values[j] = value;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradients[i][j], expected, 1e-7 * (1 + std::abs(expected)) * 10)
          << "input " << i << ", element " << j;
    }
  }
}

Output Unary(Builder& b, const char* op, const Inputs& in) {
  return b.Add(op, {in[0]});
}

Output StepAndSeed(Builder& b) {
  return Const(b, Tensor::Scalar<int64_t>(3));
}

std::vector<Case> ElementwiseCases() {
  std::vector<Case> cases;
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Identity", "CheckNumerics", "Neg", "Abs",
                         "Square", "Exp", "Erf", "Sin", "Cos"}) {
    cases.push_back(
        {op, {{3, 4}}, [op](Builder& b, const Inputs& in) { return Unary(b, op, in); }});
  }
  for (const char* op : {"Log", "Sqrt", "Rsqrt"}) {
    cases.push_back(
        {op, {{3, 4}}, [op](Builder& b, const Inputs& in) { return Unary(b, op, in); }, 0.3, 3});
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow"}) {
    auto build = [op](Builder& b, const Inputs& in) { return b.Add(op, {in[0], in[1]}); };
    const std::pair<Shape, Shape> shapes[] = {
        {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {2, 1, 4}}, {{}, {3, 4}}, {{1}, {2, 2}}};
    for (const auto& [x, y] : shapes) cases.push_back({op, {x, y}, build, 0.4, 2});
  }
  cases.push_back(
      {"Mul", {{5}}, [](Builder& b, const Inputs& in) { return Mul(b, in[0], in[0]); }});
  // exchange_test.cc tests the gradient with several replicas.
  cases.push_back({"AllReduceMean", {{5}}, [](Builder& b, const Inputs& in) {
                     return AllReduceMean(b, Square(b, in[0]));
                   }});
  cases.push_back({"ClipByValue", {{20}}, [](Builder& b, const Inputs& in) {
                     return ClipByValue(b, in[0], -1, 0.5);
                   }});
  cases.push_back({"Select", {{3, 4}, {4}}, [](Builder& b, const Inputs& in) {
                     return Select(b, Greater(b, in[0], Scalar(b, kF64, 0)), in[0], in[1]);
                   }});
  cases.push_back({"Dropout", {{5, 8}}, [](Builder& b, const Inputs& in) {
                     return Dropout(b, in[0], StepAndSeed(b), StepAndSeed(b), 0.4);
                   }});
  return cases;
}

std::vector<Case> LinearCases() {
  std::vector<Case> cases;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      cases.push_back(
          {"MatMul",
           {ta ? Shape{4, 3} : Shape{3, 4}, tb ? Shape{5, 4} : Shape{4, 5}},
           [ta, tb](Builder& b, const Inputs& in) { return MatMul(b, in[0], in[1], ta, tb); }});
    }
  }
  // All axes except the last are treated as rows.
  for (const bool tb : {false, true}) {
    cases.push_back(
        {"MatMul", {{2, 3, 4}, tb ? Shape{5, 4} : Shape{4, 5}}, [tb](Builder& b, const Inputs& in) {
           return MatMul(b, in[0], in[1], false, tb);
         }});
  }
  cases.push_back({"MatMul", {{2, 3, 4}, {2, 3, 5}}, [](Builder& b, const Inputs& in) {
                     return MatMul(b, in[0], in[1], true);
                   }});
  cases.push_back({"BiasAdd", {{2, 3, 4}, {4}}, [](Builder& b, const Inputs& in) {
                     return BiasAdd(b, in[0], in[1]);
                   }});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    cases.push_back(
        {op, {{3, 4}}, [op](Builder& b, const Inputs& in) { return Unary(b, op, in); }});
  }
  cases.push_back(
      {"SparseSoftmaxCrossEntropyWithLogits", {{3, 4}}, [](Builder& b, const Inputs& in) {
         const Output labels = Const(b, Tensor::Of<int64_t>({3}, {2, 0, 3}));
         return SparseSoftmaxCrossEntropyWithLogits(b, in[0], labels).loss;
       }});
  cases.push_back(
      {"SoftmaxCrossEntropyWithLogits", {{3, 4}, {3, 4}}, [](Builder& b, const Inputs& in) {
         return SoftmaxCrossEntropyWithLogits(b, in[0], Softmax(b, in[1])).loss;
       }});
  return cases;
}

std::vector<Case> BatchCases() {
  std::vector<Case> cases;
  for (const bool ax : {false, true}) {
    for (const bool ay : {false, true}) {
      const auto build = [ax, ay](Builder& b, const Inputs& in) {
        return BatchMatMul(b, in[0], in[1], ax, ay);
      };
      const auto matrices = [](std::vector<int64_t> dims, bool adj, int64_t rows, int64_t cols) {
        dims.insert(dims.end(), {adj ? cols : rows, adj ? rows : cols});
        return Shape(std::move(dims));
      };
      using Dims = std::vector<int64_t>;
      const std::pair<Dims, Dims> batches[] = {{{2}, {2}}, {{2, 1}, {3}}, {{}, {2}}};
      for (const auto& [x, y] : batches)
        cases.push_back({"BatchMatMulV2", {matrices(x, ax, 2, 3), matrices(y, ay, 3, 4)}, build});
    }
  }
  // The matrix products of attention, on tensors [batch, steps, heads, size]. The graph passes
  // remove the Transpose ops.
  cases.push_back({"BatchMatMulV2",
                   {{2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 3}},
                   [](Builder& b, const Inputs& in) {
                     Inputs heads;
                     for (const Output x : in) heads.push_back(Transpose(b, x, {0, 2, 1, 3}));
                     const Output keys = Transpose(b, heads[1], {0, 1, 3, 2});
                     const Output scores = Softmax(b, BatchMatMul(b, heads[0], keys));
                     return Transpose(b, BatchMatMul(b, scores, heads[2]), {0, 2, 1, 3});
                   }});
  return cases;
}

std::vector<Case> ShapeCases() {
  std::vector<Case> cases;
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {0}, {1}, {2}, {0, 2}}) {
      for (const bool keep_dims : {false, true}) {
        cases.push_back({op, {{2, 3, 4}}, [=](Builder& b, const Inputs& in) {
                           return b.Add(op, {in[0]}, {{"axes", axes}, {"keep_dims", keep_dims}});
                         }});
      }
    }
  }
  cases.push_back({"Reshape", {{2, 6}}, [](Builder& b, const Inputs& in) {
                     return Reshape(b, in[0], {3, 4});
                   }});
  cases.push_back({"Transpose", {{2, 3, 4}}, [](Builder& b, const Inputs& in) {
                     return Transpose(b, in[0], {2, 0, 1});
                   }});
  cases.push_back({"BroadcastTo", {{3, 1}}, [](Builder& b, const Inputs& in) {
                     return BroadcastTo(b, in[0], {2, 3, 4});
                   }});
  // Cast float64 to float64, because float32 would be too coarse for central differences. The case
  // only tests that the gradient passes through Cast.
  cases.push_back({"Cast", {{3}}, [](Builder& b, const Inputs& in) {
                     return Mul(b, in[0], b.Add("Cast", {in[0]}, {{"dtype", kF64}}));
                   }});
  return cases;
}

std::vector<Case> PartCases() {
  std::vector<Case> cases;
  cases.push_back({"Concat", {{2, 3, 2}, {2, 1, 2}, {2, 2, 2}}, [](Builder& b, const Inputs& in) {
                     return Concat(b, in, 1);
                   }});
  cases.push_back({"Slice", {{4, 5}}, [](Builder& b, const Inputs& in) {
                     return Slice(b, in[0], {1, 2}, {2, 3});
                   }});
  cases.push_back({"Pad", {{2, 3}}, [](Builder& b, const Inputs& in) {
                     return Pad(b, in[0], {1, 0}, {0, 2});
                   }});
  return cases;
}

std::vector<Case> RowCases() {
  std::vector<Case> cases;
  for (const Shape& table : {Shape{4, 3}, Shape{4}, Shape{4, 2, 2}}) {
    cases.push_back({"Gather", {table}, [](Builder& b, const Inputs& in) {
                       return Gather(b, in[0], Const(b, Tensor::Of<int32_t>({2, 2}, {2, 0, 2, 3})));
                     }});
  }
  // Two ops gather rows of the same table, and a third op uses all rows of that table.
  cases.push_back({"Gather", {{4, 3}}, [](Builder& b, const Inputs& in) {
                     const Output rows =
                         Gather(b, in[0], Const(b, Tensor::Of<int32_t>({2}, {2, 0})));
                     const Output more =
                         Gather(b, in[0], Const(b, Tensor::Of<int64_t>({2}, {3, 0})));
                     return MatMul(b, Mul(b, rows, Exp(b, more)), in[0], false, true);
                   }});
  cases.push_back({"UnsortedSegmentSum", {{4, 3}}, [](Builder& b, const Inputs& in) {
                     return UnsortedSegmentSum(b, in[0],
                                               Const(b, Tensor::Of<int64_t>({4}, {2, 0, 2, 1})), 5);
                   }});
  return cases;
}

std::vector<Case> ImageCases() {
  // The windows have strides, padding on one side, and dilation. The filter has two groups.
  const Window window = {.height = {2, 2, 1, 1, 0}, .width = {3, 1, 2, 2, 1}};
  const Window pooling = {.height = {2, 2, 1, 1, 0}, .width = {3, 1, 1, 1, 1}};
  const Shape image = {2, 4, 5, 4}, filter = {2, 3, 2, 6};
  std::vector<Case> cases;
  cases.push_back({"Conv2D", {image, filter}, [=](Builder& b, const Inputs& in) {
                     return Conv2D(b, in[0], in[1], window);
                   }});
  cases.push_back(
      {"Conv2DBackpropInput", {filter, {2, 2, 4, 6}}, [=](Builder& b, const Inputs& in) {
         return Conv2DBackpropInput(b, in[0], in[1], image, window);
       }});
  cases.push_back({"MaxPool", {image}, [=](Builder& b, const Inputs& in) {
                     return MaxPool(b, in[0], pooling);
                   }});
  Tensor transforms(kF64, {2, 8});
  std::mt19937 random(2);
  std::uniform_real_distribution<double> numbers(-0.7, 0.7);
  for (double& number : transforms.data<double>()) number = numbers(random);
  for (const char* interpolation : {"BILINEAR", "NEAREST"}) {
    cases.push_back(
        {"ImageProjectiveTransformV3", {image}, [=](Builder& b, const Inputs& in) {
           return ImageProjectiveTransform(
               b, in[0], Const(b, transforms),
               {.height = 3, .width = 6, .interpolation = interpolation, .fill_mode = "REFLECT"});
         }});
  }
  cases.push_back({"AvgPool", {image}, [=](Builder& b, const Inputs& in) {
                     return AvgPool(b, in[0], pooling);
                   }});
  return cases;
}

// Returns x, batch-normalised over all axes but the last, with fixed factors.
Output Normal(Builder& b, Output x) {
  const Output gamma = Const(b, Tensor::Of<double>({3}, {0.5, 1.5, -1}));
  const Output beta = Const(b, Tensor::Of<double>({3}, {0.25, -0.5, 0.75}));
  return FusedBatchNorm(b, x, gamma, beta, 0.1).y;
}

std::vector<Case> NormCases() {
  std::vector<Case> cases;
  const std::vector<Shape> shapes = {{2, 4, 3}, {3}, {3}};
  cases.push_back({"FusedBatchNorm", shapes, [](Builder& b, const Inputs& in) {
                     const auto [y, mean, variance] = FusedBatchNorm(b, in[0], in[1], in[2], 0.1);
                     return Add(b, y, Mul(b, mean, variance));
                   }});
  cases.push_back({"FusedBatchNorm", {{2, 4, 3}, {3}}, [](Builder& b, const Inputs& in) {
                     return Mul(b, FusedBatchNorm(b, in[0], in[1], in[1], 0.1).variance, in[1]);
                   }});
  cases.push_back({"FusedBatchNorm", shapes, [](Builder& b, const Inputs& in) {
                     return Relu(b, FusedBatchNorm(b, in[0], in[1], in[2], 0.1).y);
                   }});
  // Two residual blocks. The first also normalises its shortcut.
  cases.push_back({"FusedBatchNorm", {{2, 4, 3}}, [](Builder& b, const Inputs& in) {
                     const Output shortcut = Normal(b, Exp(b, in[0]));
                     const Output hidden = Relu(b, Normal(b, in[0]));
                     const Output z = Relu(b, Add(b, shortcut, Normal(b, Tanh(b, hidden))));
                     return Relu(b, Add(b, Normal(b, Sigmoid(b, z)), z));
                   }});
  return cases;
}

// Adds a loop of three steps, h' = tanh(x + h·w + bias), that uses states, sequences, invariants
// and outputs in all possible ways. The inputs are the first h, x, w and bias.
Output Loop(Builder& b, const Inputs& in, bool reversed) {
  graph::ScanBuilder scan(b, 3);
  Builder& body = scan.body();
  const Output h = scan.State(in[0]), total = scan.State(in[0]);
  const Output x = scan.Sequence(in[1], reversed);
  const Output w = scan.Invariant(in[2]), bias = scan.Invariant(in[3]);
  const Output next = Tanh(body, BiasAdd(body, Add(body, x, MatMul(body, h, w)), bias));
  scan.SetNext(0, next);
  scan.SetNext(1, Add(body, Mul(body, total, Square(body, bias)), next));
  scan.Stack(next, reversed);
  scan.Stack(Mul(body, next, x));
  const auto [states, outputs] = scan.Finish();
  const Output flat = Reshape(b, Concat(b, outputs, 0), {-1});
  return Concat(b, {flat, Reshape(b, states[0], {-1}), Reshape(b, states[1], {-1})}, 0);
}

std::vector<Case> LoopCases() {
  std::vector<Case> cases;
  for (const bool reversed : {false, true}) {
    cases.push_back({"Scan", {{2, 4}, {3, 2, 4}, {4, 4}, {4}}, [=](Builder& b, const Inputs& in) {
                       return Loop(b, in, reversed);
                     }});
  }
  // A loop within a loop. Only the last state is used.
  cases.push_back({"Scan", {{2, 2}, {4, 2, 2}, {3, 2, 2}}, [](Builder& b, const Inputs& in) {
                     graph::ScanBuilder scan(b, 4);
                     const Output h = scan.State(in[0]), x = scan.Sequence(in[1]);
                     const Output ys = scan.Invariant(in[2]);
                     graph::ScanBuilder inner(scan.body(), 3);
                     const Output sum = inner.State(h), y = inner.Sequence(ys);
                     const Output factor = inner.Invariant(x);
                     inner.SetNext(0, Sigmoid(inner.body(), Add(inner.body(), sum,
                                                                MatMul(inner.body(), factor, y))));
                     const auto [states, outputs] = inner.Finish();
                     scan.SetNext(0, Mul(scan.body(), states[0], x));
                     return scan.Finish().states[0];
                   }});
  return cases;
}

// A state on which the loss does not depend, such as a moving statistic, needs no gradient.
TEST(GradientsOfScan, StatesWithoutGradientsAreNotCarried) {
  Builder b;
  const Output x = Placeholder(b, "x", kF64, {3, 2});
  graph::ScanBuilder scan(b, 3);
  const Output element = scan.Sequence(x), zeros = Fill(b, kF64, {2}, 0);
  const Output used = scan.State(zeros), moving = scan.State(zeros);
  const Output next = Tanh(scan.body(), Add(scan.body(), used, element));
  scan.SetNext(0, next);
  scan.SetNext(1, Add(scan.body(), moving, next));
  scan.Stack(next);
  const Output loss = Sum(b, scan.Finish().outputs[0], {});
  const Output gradient = Gradients(b, loss, Inputs{x})[0];
  ASSERT_TRUE(b.ok()) << b.status();
  ASSERT_TRUE(gradient.valid());
  const graph::Node& backward = b.graph().nodes().back();
  ASSERT_EQ(backward.op, "Scan");
  EXPECT_EQ(backward.attributes.Get<int64_t>("states", -1), 1);
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = ElementwiseCases();
  for (Case& test : PartCases()) cases.push_back(std::move(test));
  for (Case& test : RowCases()) cases.push_back(std::move(test));
  for (Case& test : ImageCases()) cases.push_back(std::move(test));
  for (Case& test : NormCases()) cases.push_back(std::move(test));
  for (Case& test : BatchCases()) cases.push_back(std::move(test));
  for (Case& test : LinearCases()) cases.push_back(std::move(test));
  for (Case& test : ShapeCases()) cases.push_back(std::move(test));
  for (Case& test : LoopCases()) cases.push_back(std::move(test));
  return cases;
}

TEST(GradientsOfOps, AgreeWithCentralDifferences) {
  for (const Case& test : AllCases()) CheckCase(test, false);
}

TEST(GradientsOfOps, AgreeWithCentralDifferencesAfterThePasses) {
  for (const Case& test : AllCases()) CheckCase(test, true);
}

TEST(GradientsOfOps, AreAllChecked) {
  std::set<std::string_view> checked;
  for (const Case& test : AllCases()) checked.insert(test.op);
  for (const graph::Op& op : graph::AllOps()) {
    if (op.gradient == nullptr || op.gradient == graph::NoGradient) continue;
    EXPECT_TRUE(checked.contains(op.name)) << op.name;
  }
}

// The expected gradients are those of tf.abs and tf.clip_by_value.
TEST(Gradients, OfNaNAreThoseOfTensorFlow) {
  const double nan = std::nan("");
  const Tensor x = Tensor::Of<double>({4}, {nan, -1, 0, 2});
  const auto gradient = [&](bool clip, bool optimize) {
    Builder b;
    const Output in = Placeholder(b, "x", kF64, {4});
    const Output y = clip ? ClipByValue(b, in, -1, 1) : Abs(b, in);
    const std::vector<Output> inputs = {in};
    b.AddFetch("gradient", Gradients(b, Sum(b, y, {}), inputs)[0]);
    const auto graph = std::move(b).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    variables::VariableStore store;
    CompileOptions options;
    options.optimize = optimize;
    const auto program = Compile(*graph, store, CpuDevice(), options);
    EXPECT_TRUE(program.ok()) << program.status();
    const std::vector<Feed> feeds = {Feed::Of(x)};
    EXPECT_EQ((*program)->Run(feeds), OkStatus());
    const auto values = (*program)->Fetch<double>(0);
    return std::vector<double>(values.begin(), values.end());
  };
  for (const bool optimize : {false, true}) {
    const std::vector<double> of_abs = gradient(false, optimize);
    EXPECT_TRUE(std::isnan(of_abs[0])) << of_abs[0];
    EXPECT_EQ(std::vector(of_abs.begin() + 1, of_abs.end()), (std::vector<double>{-1, 0, 1}));
    EXPECT_EQ(gradient(true, optimize), (std::vector<double>{0, 1, 1, 0}));
  }
}

TEST(Gradients, OfANetAgreeWithCentralDifferences) {
  const Case net{"net", {{4, 5}, {5, 6}, {6}, {6, 3}, {3}}, [](Builder& b, const Inputs& in) {
                   const Output hidden = Tanh(b, BiasAdd(b, MatMul(b, in[0], in[1]), in[2]));
                   const Output logits = BiasAdd(b, MatMul(b, hidden, in[3]), in[4]);
                   const Output labels = Const(b, Tensor::Of<int64_t>({4}, {2, 0, 1, 1}));
                   const Output loss = SparseSoftmaxCrossEntropyWithLogits(b, logits, labels).loss;
                   return Add(b, Mean(b, loss, {}), Mean(b, Square(b, in[1]), {}));
                 }};
  CheckCase(net, false);
  CheckCase(net, true);
}

}  // namespace
}  // namespace tfjob::exec
