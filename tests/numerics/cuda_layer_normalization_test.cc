// Computes layer normalization and its gradients on a simulated GPU, in one op each, and compares
// them with the separate ops on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
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

constexpr int64_t kBatch = 3, kSteps = 13, kSize = 36;

// Normalizes as the layer LayerNormalization does. In a half type, the layer converts its input to
// float32, and its output back.
StatusOr<Graph> NormalizationOf(DType dtype, bool gradients) {
  Builder b;
  const DType f32 = DType::kFloat32;
  const Output x = Placeholder(b, "x", f32, {kBatch, kSteps, kSize});
  const Output gamma = Placeholder(b, "gamma", f32, {kSize});
  const Output beta = Placeholder(b, "beta", f32, {kSize});
  const auto along = [&](Output row) { return Reshape(b, row, {1, 1, kSize}); };
  const Output wide = dtype == f32 ? x : Cast(b, Square(b, Cast(b, x, dtype)), f32);
  const Output mean = Mean(b, wide, {2}, true);
  const Output variance = Mean(b, Square(b, Sub(b, wide, mean)), {2}, true);
  const Output inverse = Rsqrt(b, Add(b, variance, Scalar(b, f32, 1e-3)));
  const Output factor = Mul(b, inverse, along(gamma));
  const Output normal = Add(b, Mul(b, Sub(b, wide, mean), factor), along(beta));
  const Output y = dtype == f32 ? normal : Cast(b, Sin(b, Cast(b, normal, dtype)), f32);
  b.AddFetch("y", y);
  if (gradients) {
    const std::vector<Output> wrt = {x, gamma, beta};
    const auto found = Gradients(b, Sum(b, Mul(b, y, Sin(b, y)), {}), wrt);
    for (size_t i = 0; i < wrt.size(); ++i) b.AddFetch(std::string("d_") + "xgb"[i], found[i]);
  }
  return std::move(b).Finish();
}

std::map<std::string, std::vector<float>> ComputedOn(const Device& device, const Graph& graph) {
  std::map<std::string, std::vector<float>> values;
  variables::VariableStore store(device.row_stride, device.runtime);
  auto program = Compile(graph, store, device, {});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return values;
  std::vector<std::vector<float>> numbers;
  std::vector<Feed> feeds;
  for (const Port& port : (*program)->feeds()) {
    std::vector<float> wave(static_cast<size_t>(port.type.shape.num_elements()));
    for (size_t i = 0; i < wave.size(); ++i)
      wave[i] = static_cast<float>(1.5 + std::sin(0.7 * static_cast<double>(i + numbers.size())));
    numbers.push_back(std::move(wave));
  }
  for (const std::vector<float>& wave : numbers)
    feeds.push_back(Feed::Of(std::span<const float>(wave)));
  EXPECT_EQ((*program)->Run(feeds), OkStatus());
  for (const Port& fetch : (*program)->fetches()) {
    const auto got = (*program)->Fetch<float>((*program)->FindFetch(fetch.name));
    values[fetch.name].assign(got.begin(), got.end());
  }
  return values;
}

std::vector<std::string> OpsPlanned(const Device& device, const Graph& graph) {
  variables::VariableStore store(device.row_stride, device.runtime);
  const auto planned = PlanProgram(graph, store, device);
  EXPECT_TRUE(planned.ok()) << planned.status();
  std::vector<std::string> ops;
  if (!planned.ok()) return ops;
  for (const PlannedStep& step : planned->plan.steps) ops.push_back(step.request.op);
  return ops;
}

TEST(CudaLayerNormalizationGraph, EqualsTheSeparateOpsOnTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    SCOPED_TRACE(Name(dtype));
    const auto graph = NormalizationOf(dtype, true);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto expected = ComputedOn(CpuDevice(), *graph);
    const auto actual = ComputedOn(EmulatedCudaDevice(/*seed=*/2), *graph);
    const double bit = dtype == DType::kFloat32 ? 1e-6 : dtype == DType::kFloat16 ? 1e-3 : 8e-3;
    for (const auto& [name, values] : expected) {
      SCOPED_TRACE(name);
      double difference = 0, size = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        difference += std::pow(double{actual.at(name).at(i)} - double{values[i]}, 2);
        size += std::pow(double{values[i]}, 2);
      }
      EXPECT_LE(std::sqrt(difference), 2 * bit * std::sqrt(size));
    }
  }
}

TEST(CudaLayerNormalizationGraph, IsPlannedAsOneOpEach) {
  const Device device = EmulatedCudaDevice(/*seed=*/1);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const bool gradients : {false, true}) {
      SCOPED_TRACE(testing::Message() << Name(dtype) << ", gradients " << gradients);
      const auto graph = NormalizationOf(dtype, gradients);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const std::vector<std::string> ops = OpsPlanned(device, *graph);
      EXPECT_THAT(ops, testing::Contains("LayerNormalization").Times(1));
      EXPECT_THAT(ops, testing::Contains("LayerNormalizationGrad").Times(gradients ? 1 : 0));
      for (const char* op : {"Mean", "Rsqrt", "BroadcastTo"})
        EXPECT_THAT(ops, testing::Not(testing::Contains(op)));
      EXPECT_THAT(OpsPlanned(CpuDevice(), *graph), testing::Contains("Mean"));
    }
  }
}

}  // namespace
}  // namespace tfjob::exec
