// Computes attention and its gradients on a simulated GPU, in one op each, and compares them with
// the separate ops on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/plan_program.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Output;

constexpr DType kF32 = DType::kFloat32;
constexpr int64_t kBatch = 2, kQueries = 21, kKeys = 70, kHeads = 3, kSize = 16;

enum class MaskKind : uint8_t { kNone, kPadding, kCausal };

struct Case {
  DType dtype = DType::kBFloat16;
  MaskKind mask = MaskKind::kNone;
  bool clears = false, drops = false;
  bool gradients = true;
  bool fetches_weights = false;  // which the fused op does not return
};

// Converts [batch,positions,heads·size] to [batch,heads,positions,size].
Output Split(Builder& b, Output x) {
  const Shape shape = b.shape(x);
  return Transpose(b, Reshape(b, x, {shape.dim(0), shape.dim(1), kHeads, kSize}), {0, 2, 1, 3});
}

// In the first example, the first query sees no key.
Output MaskOf(Builder& b, MaskKind kind) {
  const auto numbers = [&b](Shape shape, double first) {
    Tensor values(kF32, std::move(shape));
    double next = first;
    for (float& value : values.data<float>()) value = static_cast<float>(next++);
    return Const(b, std::move(values));
  };
  if (kind == MaskKind::kPadding)
    return Less(b, numbers({kBatch, 1, 1, kKeys}, 0), Scalar(b, kF32, kKeys + 40));
  return GreaterEqual(b, numbers({kQueries, 1}, -1), numbers({1, 1, 1, kKeys}, 0));
}

Output Weights(Builder& b, Output scores, const Case& c) {
  if (c.mask == MaskKind::kNone) return Softmax(b, scores);
  const Output mask = Reshape(
      b, MaskOf(b, c.mask),
      c.mask == MaskKind::kCausal ? Shape({1, 1, kQueries, kKeys}) : Shape({kBatch, 1, 1, kKeys}));
  const double hidden = c.dtype == DType::kFloat16 ? -3e4 : -1e9;
  const Output y = Softmax(b, Select(b, mask, scores, Scalar(b, c.dtype, hidden)));
  return c.clears ? Select(b, mask, y, Scalar(b, c.dtype, 0)) : y;
}

StatusOr<Graph> AttentionOf(const Case& c) {
  Builder b;
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  std::vector<Output> inputs;
  for (const auto& [name, positions] :
       {std::pair("q", kQueries), std::pair("k", kKeys), std::pair("v", kKeys)})
    inputs.push_back(Placeholder(b, name, kF32, {kBatch, positions, kHeads * kSize}));
  const auto half = [&](size_t i) { return Cast(b, inputs[i], c.dtype); };
  const Output q = Split(b, Mul(b, half(0), Scalar(b, c.dtype, 0.25)));
  const Output k = Split(b, half(1)), v = Split(b, half(2));
  const Output weights = Weights(b, BatchMatMul(b, q, k, false, true), c);
  const Output seed = Scalar(b, DType::kInt64, 5);
  const Output used = c.drops ? Dropout(b, weights, step, seed, 0.25) : weights;
  const Output heads = Transpose(b, BatchMatMul(b, used, v), {0, 2, 1, 3});
  const Output y = Cast(b, Reshape(b, heads, {kBatch, kQueries, kHeads * kSize}), kF32);
  b.AddFetch("y", y);
  if (c.fetches_weights) b.AddFetch("weights", Cast(b, weights, kF32));
  if (c.gradients) {
    // The gradient of y differs from element to element.
    const auto gradients = Gradients(b, Sum(b, Mul(b, y, Sin(b, y)), {}), inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      b.AddFetch(std::string("d_") + "qkv"[i], gradients[i]);
  }
  return std::move(b).Finish();
}

using Values = std::map<std::string, std::vector<float>>;

Values Computed(const Graph& graph, const Device& device) {
  Values values;
  variables::VariableStore store(device.row_stride, device.runtime);
  auto program = Compile(graph, store, device, {});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return values;
  std::vector<std::vector<float>> numbers;
  for (const int64_t positions : {kQueries, kKeys, kKeys}) {
    std::vector<float> wave(static_cast<size_t>(kBatch * positions * kHeads * kSize));
    for (size_t i = 0; i < wave.size(); ++i)
      wave[i] =
          static_cast<float>(std::sin(0.37 * static_cast<double>(i * (numbers.size() + 1)) + 1));
    numbers.push_back(std::move(wave));
  }
  const int64_t step = 3;
  std::vector<Feed> feeds;
  for (const Port& port : (*program)->feeds()) {
    const auto input = std::string("qkv").find(port.name);
    feeds.push_back(input == std::string::npos ? Feed::Of(step)
                                               : Feed::Of(std::span<const float>(numbers[input])));
  }
  EXPECT_EQ((*program)->Run(feeds), OkStatus());
  for (const Port& fetch : (*program)->fetches()) {
    const auto got = (*program)->Fetch<float>((*program)->FindFetch(fetch.name));
    values[fetch.name].assign(got.begin(), got.end());
  }
  return values;
}

std::vector<std::string> PlannedOps(const Graph& graph, const Device& device) {
  variables::VariableStore store(device.row_stride, device.runtime);
  const auto planned = PlanProgram(graph, store, device);
  EXPECT_TRUE(planned.ok()) << planned.status();
  std::vector<std::string> ops;
  if (!planned.ok()) return ops;
  for (const PlannedStep& step : planned->plan.steps) ops.push_back(step.request.op);
  return ops;
}

// Returns the root of the mean squared difference, relative to that of the expected values.
double Difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{actual[i]} - double{expected[i]}, 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16})
    for (const MaskKind mask : {MaskKind::kNone, MaskKind::kPadding, MaskKind::kCausal})
      for (const bool clears : {false, true})
        for (const bool drops : {false, true})
          if (mask != MaskKind::kNone || !clears) cases.push_back({dtype, mask, clears, drops});
  // The half types share their code, so float16 needs only some of the cases.
  std::erase_if(cases, [](const Case& c) {
    return c.dtype == DType::kFloat16 && (c.clears != c.drops || c.mask == MaskKind::kPadding);
  });
  return cases;
}

TEST(CudaAttentionGraph, EqualsTheSeparateOpsOnTheCpu) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(testing::Message() << Name(c.dtype) << ", mask " << static_cast<int>(c.mask)
                                    << ", clears " << c.clears << ", drops " << c.drops);
    const auto graph = AttentionOf(c);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Values expected = Computed(*graph, CpuDevice());
    const Values actual = Computed(*graph, EmulatedCudaDevice(/*seed=*/2));
    for (const auto& [name, values] : expected) {
      SCOPED_TRACE(name);
      ASSERT_EQ(actual.at(name).size(), values.size());
      // The CPU rounds the scores, the weights and their gradients to the half type, too.
      EXPECT_LE(Difference(actual.at(name), values), c.dtype == DType::kFloat16 ? 4e-3 : 3e-2);
    }
  }
}

TEST(CudaAttentionGraph, IsPlannedAsOneOpEach) {
  const Device device = EmulatedCudaDevice(/*seed=*/1);
  for (Case c : Cases()) {
    for (const bool gradients : {false, true}) {
      c.gradients = gradients;
      const auto graph = AttentionOf(c);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const std::vector<std::string> ops = PlannedOps(*graph, device);
      EXPECT_THAT(ops, testing::Contains("Attention").Times(1));
      EXPECT_THAT(ops, testing::Contains("AttentionGrad").Times(gradients ? 1 : 0));
      for (const char* op : {"Softmax", "SoftmaxGrad", "BatchMatMulV2", "Transpose", "Dropout"})
        EXPECT_THAT(ops, testing::Not(testing::Contains(op)));
    }
    EXPECT_THAT(PlannedOps(*AttentionOf(c), CpuDevice()), testing::Contains("Softmax").Times(1));
  }
}

// Attention in float32, and attention whose weights are needed, consists of the library's matrix
// products.
TEST(CudaAttentionGraph, LeavesOtherAttentionsAlone) {
  const Device device = EmulatedCudaDevice(/*seed=*/1);
  for (const bool gradients : {false, true}) {
    for (const Case& c :
         {Case{.dtype = kF32, .gradients = gradients},
          Case{.mask = MaskKind::kCausal, .gradients = gradients, .fetches_weights = true}}) {
      const auto graph = AttentionOf(c);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const std::vector<std::string> ops = PlannedOps(*graph, device);
      EXPECT_THAT(ops, testing::Not(testing::Contains("Attention")));
      EXPECT_THAT(ops, testing::Contains("Softmax").Times(1));
    }
  }
}

}  // namespace
}  // namespace tfjob::exec
