// Compares loops (Scan) with the same steps written without a loop. gradients_test.cc tests the
// gradients of loops.
#include "runtime/graph/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/exec/fake_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;

constexpr DType kF32 = DType::kFloat32;
constexpr int64_t kSteps = 5, kRows = 3, kColumns = 4;

// Pads the rows of every matrix.
int64_t Padded(DType, const Shape& shape) {
  const int64_t cols = shape.rank() == 0 ? 1 : shape.dim(-1);
  return shape.rank() == 2 ? cols + 3 : cols;
}

std::vector<float> Random(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> all(static_cast<size_t>(shape.num_elements()));
  for (float& value : all) value = values(random);
  return all;
}

struct Inputs {
  Output h, c, xs, mask, w;
};

const Shape kState = {kRows, kColumns}, kSequence = {kSteps, kRows, kColumns},
            kMask = {kSteps, kRows}, kWeights = {kColumns, kColumns};

Inputs AddInputs(Builder& b) {
  return {Placeholder(b, "h", kF32, kState), Placeholder(b, "c", kF32, kState),
          Placeholder(b, "xs", kF32, kSequence), Placeholder(b, "mask", kF32, kMask),
          ReadVariable(b, "w", kF32, kWeights)};
}

// The values of one step. It has two states that are swapped, a state that the mask keeps, and
// every kind of output.
struct Step {
  Output h, c, sum;
};
Step Next(Builder& b, Output h, Output c, Output x, Output mask, Output w) {
  const Output counts = Greater(b, Reshape(b, mask, {kRows, 1}), Scalar(b, kF32, 0));
  const Output sum = Tanh(b, Add(b, x, MatMul(b, h, w)));
  return {c, Select(b, counts, sum, h), sum};
}

void AddFetches(Builder& b, const std::vector<Output>& values) {
  for (size_t i = 0; i < values.size(); ++i) b.AddFetch(StrCat("y", i), values[i]);
}

graph::Graph Loop(bool reversed) {
  Builder b;
  const Inputs in = AddInputs(b);
  graph::ScanBuilder scan(b, kSteps);
  const Output h = scan.State(in.h), c = scan.State(in.c);
  const Output x = scan.Sequence(in.xs, reversed), mask = scan.Sequence(in.mask, reversed);
  const Step next = Next(scan.body(), h, c, x, mask, scan.Invariant(in.w));
  scan.SetNext(0, next.h);
  scan.SetNext(1, next.c);
  scan.Stack(next.sum);
  scan.Stack(next.c, true);  // also a state
  scan.Stack(next.sum);      // the same value twice
  scan.Stack(h);             // a state before the step
  scan.Stack(Scalar(scan.body(), kF32, 7));
  const auto [states, outputs] = scan.Finish();
  AddFetches(b, states);
  for (size_t i = 0; i < outputs.size(); ++i) b.AddFetch(StrCat("ys", i), outputs[i]);
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

Output StepAt(Builder& b, Output sequence, int64_t step) {
  std::vector<int64_t> size = b.shape(sequence).dims();
  std::vector<int64_t> begin(size.size(), 0);
  begin[0] = step;
  size[0] = 1;
  const Output slice = Slice(b, sequence, begin, size);
  return Reshape(b, slice, Shape(std::vector<int64_t>(size.begin() + 1, size.end())));
}

Output Stacked(Builder& b, const std::vector<Output>& steps, bool reversed) {
  std::vector<Output> rows;
  for (Output step : steps) {
    std::vector<int64_t> dims = b.shape(step).dims();
    dims.insert(dims.begin(), 1);
    rows.insert(reversed ? rows.begin() : rows.end(), Reshape(b, step, Shape(dims)));
  }
  return Concat(b, rows, 0);
}

graph::Graph Unrolled(bool reversed) {
  Builder b;
  const Inputs in = AddInputs(b);
  Output h = in.h, c = in.c;
  std::vector<Output> sums, cs, hs, sevens;
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t at = reversed ? kSteps - 1 - step : step;
    hs.push_back(h);
    const Step next = Next(b, h, c, StepAt(b, in.xs, at), StepAt(b, in.mask, at), in.w);
    h = next.h;
    c = next.c;
    sums.push_back(next.sum);
    cs.push_back(c);
    sevens.push_back(Scalar(b, kF32, 7));
  }
  AddFetches(b, {h, c});
  const Output ys[] = {Stacked(b, sums, false), Stacked(b, cs, true), Stacked(b, sums, false),
                       Stacked(b, hs, false), Stacked(b, sevens, false)};
  for (size_t i = 0; i < std::size(ys); ++i) b.AddFetch(StrCat("ys", i), ys[i]);
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

std::vector<std::vector<float>> RunTwice(const graph::Graph& graph, bool optimize, bool padded) {
  Device device = CpuDevice();
  if (padded) device.row_stride = Padded;
  variables::VariableStore store(device.row_stride);
  auto w = store.Create("w", kF32, kWeights, variables::Kind::kTrainable);
  Tensor weights(kF32, kWeights);
  std::ranges::copy(Random(kWeights, 5), weights.data<float>().begin());
  EXPECT_TRUE((*w)->FromTensor(weights).ok());
  CompileOptions options;
  options.optimize = optimize;
  auto program = Compile(graph, store, device, options);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto h = Random(kState, 1), c = Random(kState, 2), xs = Random(kSequence, 3),
             mask = Random(kMask, 4);
  const Feed feeds[] = {Feed::Of(std::span(h)), Feed::Of(std::span(c)), Feed::Of(std::span(xs)),
                        Feed::Of(std::span(mask))};
  EXPECT_TRUE((*program)->Run(feeds).ok());
  EXPECT_TRUE((*program)->Run(feeds).ok());  // the second run starts from the initial states
  std::vector<std::vector<float>> values;
  for (int i = 0; i < static_cast<int>((*program)->fetches().size()); ++i) {
    const auto value = (*program)->Fetch<float>(i);
    values.emplace_back(value.begin(), value.end());
  }
  return values;
}

TEST(Scan, EqualsTheStepsWithoutALoop) {
  for (const bool reversed : {false, true}) {
    for (const bool optimize : {false, true}) {
      for (const bool padded : {false, true}) {
        const auto got = RunTwice(Loop(reversed), optimize, padded);
        const auto wanted = RunTwice(Unrolled(reversed), optimize, padded);
        ASSERT_EQ(got.size(), wanted.size());
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], wanted[i]) << i << reversed;
      }
    }
  }
}

// The sizes of LongLoop, a recurrence with a mask and a gradient, which has enough rows to be split
// into several loops.
constexpr int64_t kManyRows = 70, kWide = 64, kLongSteps = 9;
// The index of the only fetch that is computed after the loop, namely by a single product, which is
// divided among the threads. Without AVX-512, oneDNN may use another algorithm for a part of a
// product than for the whole product, so the results may be rounded differently.
constexpr size_t kGradientOfWeights = 3;

graph::Graph LongLoop() {
  Builder b;
  graph::ScanBuilder scan(b, kLongSteps);
  Builder& body = scan.body();
  const Output w = Placeholder(b, "w", kF32, {kWide, kWide});
  const Output h = scan.State(Placeholder(b, "h", kF32, {kManyRows, kWide}));
  const Output xs = Placeholder(b, "x", kF32, {kLongSteps, kManyRows, kWide});
  const Output x = scan.Sequence(xs, true);
  const Output mask = scan.Sequence(Placeholder(b, "mask", kF32, {kLongSteps, kManyRows, 1}));
  const Output kept = scan.Invariant(Placeholder(b, "kept", kF32, {kManyRows, kWide}));
  const Output z = Tanh(body, Add(body, x, MatMul(body, Mul(body, h, kept), scan.Invariant(w))));
  scan.SetNext(0, Select(body, Greater(body, mask, Scalar(body, kF32, 0)), z, h));
  scan.Stack(z);
  const auto [states, outputs] = scan.Finish();
  b.AddFetch("state", states[0]);
  b.AddFetch("outputs", outputs[0]);
  const Output loss = Add(b, Sum(b, Square(b, states[0]), {}), Sum(b, Square(b, outputs[0]), {}));
  const std::vector<Output> gradients = Gradients(b, loss, std::vector<Output>{xs, w});
  b.AddFetch("gradient of x", gradients[0]);
  b.AddFetch("gradient of w", gradients[1]);
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

// Runs LongLoop. Returns its fetches.
std::vector<std::vector<float>> RunLongLoop(ThreadPool* pool, const Device& device) {
  variables::VariableStore store(device.row_stride, device.runtime);
  Device with_pool = device;
  with_pool.pool = pool;
  auto program = Compile(LongLoop(), store, with_pool);
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<std::vector<float>> inputs;
  std::vector<Feed> feeds;
  for (const Port& port : (*program)->feeds())
    inputs.push_back(Random(port.type.shape, static_cast<unsigned>(inputs.size())));
  for (const std::vector<float>& input : inputs) feeds.push_back(Feed::Of(std::span(input)));
  EXPECT_TRUE((*program)->Run(feeds).ok());
  std::vector<std::vector<float>> values;
  for (int i = 0; i < static_cast<int>((*program)->fetches().size()); ++i) {
    const auto value = (*program)->Fetch<float>(i);
    values.emplace_back(value.begin(), value.end());
  }
  return values;
}

TEST(Scan, GivesTheSameResultsWhenItsRowsAreDivided) {
  const auto whole = RunLongLoop(nullptr, FakeDevice(1));  // does not split the Scan
  const auto divided = RunLongLoop(nullptr, CpuDevice());
  ThreadPool pool("test", 3);
  const auto by_threads = RunLongLoop(&pool, CpuDevice());
  ASSERT_EQ(divided.size(), whole.size());
  ASSERT_EQ(by_threads.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i == kGradientOfWeights) {
      for (size_t j = 0; j < whole[i].size(); ++j)
        ASSERT_NEAR(by_threads[i][j], divided[i][j], 1e-4 * (1 + std::abs(divided[i][j]))) << j;
    } else {
      EXPECT_EQ(by_threads[i], divided[i]) << i;
    }
    ASSERT_EQ(divided[i].size(), whole[i].size());
    for (size_t j = 0; j < whole[i].size(); ++j)
      ASSERT_NEAR(divided[i][j], whole[i][j], 1e-4 * (1 + std::abs(whole[i][j]))) << i << " " << j;
  }
}

TEST(Scan, ComputesTheGradientOfWeightsAfterTheLoop) {
  Builder b;
  const Inputs in = AddInputs(b);
  graph::ScanBuilder scan(b, kSteps);
  const Output h = scan.State(in.h), x = scan.Sequence(in.xs);
  const Output next =
      Tanh(scan.body(), Add(scan.body(), x, MatMul(scan.body(), h, scan.Invariant(in.w))));
  scan.SetNext(0, next);
  const Output loss = Sum(b, scan.Finish().states[0], {});
  b.AddFetch("gradient", Gradients(b, loss, std::vector<Output>{in.w})[0]);
  const auto graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const graph::Node& gradient = graph->node(graph->FindFetch("gradient")->output);
  EXPECT_EQ(gradient.op, "MatMul");
  EXPECT_EQ(graph->type(gradient.inputs[0]).shape, Shape({kSteps * kRows, kColumns}));
}

TEST(Scan, RefusesWhatDoesNotFit) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, kSequence);
  graph::ScanBuilder scan(b, kSteps + 1);
  scan.Stack(scan.Sequence(x));
  scan.Finish();
  EXPECT_EQ(Message(b.status()), "expected sequences of 6 steps, got float32[5,3,4]");

  Builder other;
  graph::ScanBuilder loop(other, kSteps);
  loop.State(Placeholder(other, "h", kF32, kState));
  loop.SetNext(0, loop.Sequence(Placeholder(other, "x", kF32, {kSteps, 2})));
  loop.Finish();
  EXPECT_NE(Message(other.status()).find("state 0 is float32[3,4] before a step, and float32[2]"),
            std::string::npos)
      << other.status();
}

TEST(Scan, RandomOpsOfABodyDifferFromThoseAroundIt) {
  Builder b;
  EXPECT_EQ(b.NextOpId(), 0);
  graph::ScanBuilder scan(b, kSteps);
  EXPECT_EQ(scan.body().NextOpId(), 1);
  EXPECT_EQ(b.NextOpId(), 2);
}

TEST(Scan, PrintsItsBody) {
  Builder b;
  graph::ScanBuilder scan(b, kSteps);
  scan.Stack(Neg(scan.body(), scan.Sequence(Placeholder(b, "x", kF32, {kSteps, 2}))));
  scan.Finish();
  EXPECT_NE(b.graph().ToString().find("\n    Neg = Neg(sequence_0) : float32[2]\n"),
            std::string::npos)
      << b.graph().ToString();
}

}  // namespace
}  // namespace tfjob::exec
