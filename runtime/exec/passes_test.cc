// Checks that no pass changes the values of fetches and variables, by running random graphs with
// and without each pass.
#include "runtime/graph/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/exec/evaluate.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/window.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Output;

constexpr DType kF64 = DType::kFloat64;

Tensor RandomTensor(const Shape& shape, std::mt19937& random) {
  Tensor tensor(kF64, shape);
  std::uniform_real_distribution<double> values(0.2, 1.5);
  for (double& value : tensor.data<double>()) value = values(random);
  return tensor;
}

// Builds a graph of random ops on values of shapes [4,4], [4] and []. Fetches some of the values.
// Reads one variable, writes it and reads it again.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    matrices_ = {Placeholder(b_, "x", kF64, {4, 4}), Placeholder(b_, "y", kF64, {4, 4}),
                 ReadVariable(b_, "v", kF64, {4, 4}), Const(b_, RandomTensor({4, 4}, random_)),
                 Fill(b_, kF64, {4, 4}, 1)};
    small_ = {Placeholder(b_, "row", kF64, {4}), Scalar(b_, kF64, 1), Scalar(b_, kF64, 0.5),
              Const(b_, Tensor::Of<double>({4, 1}, {2, 2, 2, 2}))};
    for (int i = 0; i < 40; ++i) matrices_.push_back(Next());
    AssignAdd(b_, "v", Pick(matrices_));
    matrices_.push_back(ReadVariable(b_, "v", kF64, {4, 4}));
    for (int i = 0; i < 10; ++i) matrices_.push_back(Next());
    for (int i = 0; i < 4; ++i) b_.AddFetch(StrCat("fetch", i), Pick(matrices_));
    b_.AddFetch("last", matrices_.back());
  }

  // Adds one SGD step on the variable, for a loss that depends on the last value.
  void Train() {
    optimizer::Optimizer sgd;
    sgd.learning_rate = 0.1;
    const Output trained = ReadVariable(b_, "v", kF64, {4, 4});
    const Output y = MatMul(b_, Bounded(matrices_.back()), Tanh(b_, trained));
    const Output loss = Mean(b_, Mul(b_, y, Softmax(b_, Add(b_, y, trained))), {});
    std::vector<Output> wrt{trained, matrices_[0]};
    wrt.resize(UsesInput(loss, wrt[1]) ? 2 : 1);
    const std::vector<Output> gradients = Gradients(b_, loss, wrt);
    b_.AddFetch("loss", loss);
    if (wrt.size() > 1) b_.AddFetch("input_gradient", gradients[1]);
    ApplyOptimizer(b_, "v", gradients[0], Const(b_, Tensor::Scalar<int64_t>(0)), ToAttributes(sgd));
  }

  Graph Finish() {
    auto graph = std::move(b_).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

 private:
  Output Pick(const std::vector<Output>& values) {
    const size_t recent = std::min<size_t>(values.size(), 8);
    return values[values.size() - 1 - random_() % recent];
  }

  // Maps values into (0, 1), so that nothing overflows.
  Output Bounded(Output x) { return Sigmoid(b_, x); }

  Output Next() {
    const Output x = Pick(matrices_);
    const Output y = random_() % 3 == 0 ? small_[random_() % small_.size()] : Pick(matrices_);
    switch (random_() % 12) {
      case 0:
        return Add(b_, Bounded(x), y);
      case 1:
        return Sub(b_, x, Bounded(y));
      case 2:
        return Mul(b_, Bounded(x), y);
      case 3:
        return Maximum(b_, x, y);
      case 4:
        return Tanh(b_, BiasAdd(b_, MatMul(b_, Bounded(x), Bounded(Pick(matrices_))), small_[0]));
      case 5:
        return Bounded(MatMul(b_, Bounded(x), x, true, false));
      case 6:
        return Reshape(b_, Reshape(b_, x, {16}), {4, 4});
      case 7:
        return Transpose(b_, Identity(b_, x), {1, 0});
      case 8:
        return Add(b_, Mean(b_, x, {0}, true), x);
      case 9:
        return ClipByValue(b_, Neg(b_, x), -0.5, 0.5);
      case 10:
        return Square(b_, Bounded(x));
      default:
        return Softmax(b_, x);
    }
  }

  bool UsesInput(Output from, Output input) const {
    std::vector<bool> used(static_cast<size_t>(from.node) + 1, false);
    used.back() = true;
    for (int id = from.node; id > input.node; --id) {
      if (!used[static_cast<size_t>(id)]) continue;
      for (Output next : b_.graph().node(id).inputs) used[static_cast<size_t>(next.node)] = true;
    }
    return used[static_cast<size_t>(input.node)];
  }

  std::mt19937 random_;
  Builder b_;
  std::vector<Output> matrices_;
  std::vector<Output> small_;
};

// Returns the values of all fetches and of the variable after two runs.
std::vector<double> ValuesOf(const Graph& graph, int64_t (*row_stride)(DType, const Shape&),
                             bool optimize = false) {
  Device device = CpuDevice();
  device.row_stride = row_stride;
  variables::VariableStore store(row_stride);
  std::mt19937 random(3);
  const Tensor initial = RandomTensor({4, 4}, random);
  EXPECT_TRUE(
      (*store.Create("v", kF64, {4, 4}, variables::Kind::kTrainable))->FromTensor(initial).ok());
  CompileOptions options;
  options.optimize = optimize;
  auto program = Compile(graph, store, device, options);
  EXPECT_TRUE(program.ok()) << program.status();
  const std::vector<Tensor> inputs = {RandomTensor({4, 4}, random), RandomTensor({4, 4}, random),
                                      RandomTensor({4}, random)};
  std::vector<Feed> feeds;
  for (const Tensor& input : inputs) feeds.push_back(Feed::Of(input));
  for (int run = 0; run < 2; ++run) EXPECT_TRUE((*program)->Run(feeds).ok());
  std::vector<double> values;
  for (size_t i = 0; i < (*program)->fetches().size(); ++i) {
    for (double value : (*program)->Fetch<double>(static_cast<int>(i))) values.push_back(value);
  }
  const Tensor written = store.Find("v")->ToTensor();
  for (double value : written.data<double>()) values.push_back(value);
  return values;
}

int64_t Padded(DType, const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.dim(-1) + (shape.rank() == 2 ? 5 : 0);
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(Passes, KeepTheValuesOfRandomGraphs) {
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).Finish();
    const std::vector<double> expected = ValuesOf(graph, variables::DenseRowStride);
    ExpectNear(ValuesOf(graph, Padded), expected);
    Graph rewritten = graph;
    for (const graph::Pass& pass :
         graph::StandardPasses(KernelEvaluator(CpuDevice().kernels.get()))) {
      SCOPED_TRACE(pass.name);
      auto next = pass.run(rewritten);
      ASSERT_TRUE(next.ok()) << next.status();
      rewritten = *std::move(next);
      ExpectNear(ValuesOf(rewritten, variables::DenseRowStride), expected);
    }
    ExpectNear(ValuesOf(rewritten, Padded), expected);
    nodes_before += graph.nodes().size();
    nodes_after += rewritten.nodes().size();
  }
  EXPECT_LT(nodes_after * 2, nodes_before);
}

// ClipByValue has two literals, more than any other op that can be fused.
TEST(Passes, FuseAsManyClipsAsStepsFit) {
  Builder b;
  Output y = Placeholder(b, "x", kF64, {4, 4});
  for (int i = 0; i < 20; ++i) y = ClipByValue(b, y, 0.2 + 0.01 * i, 1.5 - 0.01 * i);
  b.AddFetch("y", y);
  Device device = CpuDevice();
  variables::VariableStore store(device.row_stride);
  CompileOptions options;
  options.optimize = true;
  const auto program = Compile(*std::move(b).Finish(), store, device, options);
  ASSERT_TRUE(program.ok()) << program.status();
  std::mt19937 random(3);
  const Tensor input = RandomTensor({4, 4}, random);
  const std::vector<Feed> feeds = {Feed::Of(input)};
  ASSERT_TRUE((*program)->Run(feeds).ok());
  std::vector<double> expected(input.data<double>().begin(), input.data<double>().end());
  for (double& value : expected) value = std::clamp(value, 0.2 + 0.01 * 19, 1.5 - 0.01 * 19);
  const auto values = (*program)->Fetch<double>(0);
  ExpectNear({values.begin(), values.end()}, expected);
}

TEST(Passes, KeepTheStepsOfTraining) {
  for (unsigned seed = 100; seed < 110; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    random.Train();
    const Graph graph = random.Finish();
    const std::vector<double> expected = ValuesOf(graph, variables::DenseRowStride);
    ExpectNear(ValuesOf(graph, variables::DenseRowStride, true), expected);
    ExpectNear(ValuesOf(graph, Padded, true), expected);
  }
}

// Builds two convolutions with Relu and MaxPool (overlapping windows, then separate ones), and
// fetches the loss and its gradients. The second convolution's gradients skip zeros in float32.
Graph PooledConvolutions(DType dtype) {
  const Window around{.height = {3, 1, 1, 1, 1}, .width = {3, 1, 1, 1, 1}};
  Builder b;
  std::vector<Output> wrt = {Placeholder(b, "x", dtype, {2, 9, 9, 3})};
  Output y = wrt[0];
  const auto layer = [&](const Shape& filter, const Window& pooling) {
    wrt.push_back(Placeholder(b, StrCat("filter", wrt.size()), dtype, filter));
    wrt.push_back(Placeholder(b, StrCat("bias", wrt.size()), dtype, {filter.dim(3)}));
    y = Relu(b, BiasAdd(b, Conv2D(b, y, wrt[wrt.size() - 2], around), wrt.back()));
    y = MaxPool(b, y, pooling);
  };
  layer({3, 3, 3, 32}, {.height = {3, 2}, .width = {3, 2}});
  layer({3, 3, 32, 16}, {.height = {2, 2}, .width = {2, 2}});
  const Output loss = Sum(b, Square(b, y), {});
  b.AddFetch("loss", loss);
  const std::vector<Output> gradients = Gradients(b, loss, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) b.AddFetch(StrCat("gradient", i), gradients[i]);
  return *std::move(b).Finish();
}

template <typename T>
std::vector<double> ValuesOfConvolutions(bool optimize) {
  const Graph graph = PooledConvolutions(DTypeOf<T>::value);
  variables::VariableStore store;
  const auto program = Compile(graph, store, CpuDevice(), {.optimize = optimize});
  EXPECT_TRUE(program.ok()) << program.status();
  std::mt19937 random(5);
  std::uniform_real_distribution<double> numbers(-0.3, 0.3);
  std::vector<Tensor> inputs;
  for (const auto& feed : (*program)->feeds()) {
    Tensor& input = inputs.emplace_back(feed.type.dtype, feed.type.shape);
    for (T& value : input.data<T>()) value = static_cast<T>(numbers(random));
  }
  std::vector<Feed> feeds;
  for (const Tensor& input : inputs) feeds.push_back(Feed::Of(input));
  EXPECT_TRUE((*program)->Run(feeds).ok());
  std::vector<double> values;
  for (size_t i = 0; i < (*program)->fetches().size(); ++i) {
    for (const T value : (*program)->template Fetch<T>(static_cast<int>(i)))
      values.push_back(static_cast<double>(value));
  }
  return values;
}

TEST(Passes, KeepTheGradientsOfPooledConvolutions) {
  const std::vector<double> expected = ValuesOfConvolutions<double>(false);
  ExpectNear(ValuesOfConvolutions<double>(true), expected);
  const std::vector<double> single = ValuesOfConvolutions<float>(true);
  ASSERT_EQ(single.size(), expected.size());
  for (size_t i = 0; i < single.size(); ++i)
    ASSERT_NEAR(single[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << i;
}

// Returns the graph of a cross-entropy over probabilities, with its gradient. If `fuse` is set,
// applies the pass that fuses the loss before the gradient is added.
Graph CrossEntropyOverProbabilities(bool fuse) {
  Builder b;
  const Output x = Placeholder(b, "x", kF64, {2, 3});
  const Output labels = Const(b, Tensor::Of<double>({2, 3}, {0, 1, 0, 0.25, 0.25, 0.5}));
  const Output p = ClipByValue(b, Softmax(b, x), 1e-7, 1 - 1e-7);
  b.AddFetch("loss", Mean(b, Neg(b, Sum(b, Mul(b, labels, Log(b, p)), {-1})), {}));
  Graph graph = *std::move(b).Finish();
  if (fuse) graph = graph::FuseSoftmaxCrossEntropy(graph);
  Builder more(std::move(graph));
  const Output loss = more.graph().FindFetch("loss")->output;
  more.AddFetch("gradient", Gradients(more, loss, std::vector{x})[0]);
  EXPECT_TRUE(more.ok()) << more.status();
  return *std::move(more).Finish();
}

std::vector<double> LossAndGradient(const Graph& graph, const Tensor& x) {
  variables::VariableStore store;
  auto program = Compile(graph, store, CpuDevice());
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE((*program)->Run(std::array{Feed::Of(x)}).ok());
  std::vector<double> values{(*program)->Fetch<double>(0)[0]};
  for (double value : (*program)->Fetch<double>(1)) values.push_back(value);
  return values;
}

TEST(FuseSoftmaxCrossEntropy, IsEqualWhereProbabilitiesAreTameAndStableWhereNot) {
  const Tensor tame = Tensor::Of<double>({2, 3}, {0.5, -1, 2, 0, 1, -0.5});
  ExpectNear(LossAndGradient(CrossEntropyOverProbabilities(true), tame),
             LossAndGradient(CrossEntropyOverProbabilities(false), tame));
  const Tensor wild = Tensor::Of<double>({2, 3}, {1000, -1000, 0, 0, 1, -0.5});
  const std::vector<double> values = LossAndGradient(CrossEntropyOverProbabilities(true), wild);
  EXPECT_NEAR(values[0], 1000, 1);
  EXPECT_NEAR(values[1], 0.5, 1e-9);
  EXPECT_NEAR(values[2], -0.5, 1e-9);
}

}  // namespace
}  // namespace tfjob::exec
