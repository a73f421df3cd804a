// Compares activations and their gradients with their definitions, in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/activation.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Definition {
  std::function<double(double)> value;
  double gradient_at_zero;  // in TensorFlow, if the function has a corner at 0
};

double Softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double SigmoidOf(double x) {
  return 1 / (1 + std::exp(-x));
}
double Clip(double x, double low, double high) {
  return std::clamp(x, low, high);
}

const std::map<std::string, Definition>& Definitions() {
  static const auto* const kDefinitions = new std::map<std::string, Definition>{
      {"linear", {[](double x) { return x; }, 1}},
      {"relu", {[](double x) { return std::max(x, 0.0); }, 0}},
      {"sigmoid", {SigmoidOf, 0.25}},
      {"tanh", {[](double x) { return std::tanh(x); }, 1}},
      {"celu", {[](double x) { return x > 0 ? x : std::expm1(x); }, 1}},
      {"elu", {[](double x) { return x > 0 ? x : std::expm1(x); }, 1}},
      {"exponential", {[](double x) { return std::exp(x); }, 1}},
      {"gelu", {[](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); }, 0.5}},
      {"hard_shrink", {[](double x) { return std::abs(x) > 0.5 ? x : 0; }, 0}},
      {"hard_sigmoid", {[](double x) { return Clip(x / 6 + 0.5, 0, 1); }, 1.0 / 6}},
      {"hard_silu", {[](double x) { return x * Clip(x / 6 + 0.5, 0, 1); }, 0.5}},
      {"hard_tanh", {[](double x) { return Clip(x, -1, 1); }, 1}},
      {"leaky_relu", {[](double x) { return x > 0 ? x : 0.2 * x; }, 0.2}},
      {"log_sigmoid", {[](double x) { return -Softplus(-x); }, 0.5}},
      {"mish", {[](double x) { return x * std::tanh(Softplus(x)); }, 0.6}},
      {"relu6", {[](double x) { return Clip(x, 0, 6); }, 0}},
      {"selu",
       {[](double x) {
          return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
        },
        1.0507009873554805}},
      {"silu", {[](double x) { return x * SigmoidOf(x); }, 0.5}},
      {"soft_shrink", {[](double x) { return x - Clip(x, -0.5, 0.5); }, 0}},
      {"softplus", {Softplus, 0.5}},
      {"softsign", {[](double x) { return x / (1 + std::abs(x)); }, 1}},
      {"sparse_plus",
       {[](double x) { return x <= -1  ? 0
                              : x >= 1 ? x
                                       : (x + 1) * (x + 1) / 4; }, 0.5}},
      {"sparse_sigmoid", {[](double x) { return Clip((x + 1) / 2, 0, 1); }, 0.5}},
      {"squareplus", {[](double x) { return (x + std::sqrt(x * x + 4)) / 2; }, 0.5}},
      {"tanh_shrink", {[](double x) { return x - std::tanh(x); }, 0}},
  };
  return *kDefinitions;
}

struct Results {
  std::vector<double> values, gradients;
};

Results Evaluated(ActivationKind kind, std::vector<double> points) {
  graph::Builder b;
  const auto count = static_cast<int64_t>(points.size());
  const graph::Output x = graph::Placeholder(b, "x", DType::kFloat64, {count});
  const graph::Output y = Activate(b, kind, x);
  b.AddFetch("y", graph::Identity(b, y));
  b.AddFetch("gradient", graph::Gradients(b, graph::Sum(b, y, {}), std::span(&x, 1))[0]);
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  variables::VariableStore store = TestStore();
  auto program = exec::Compile(*graph, store, TestDevice());
  EXPECT_TRUE(program.ok()) << program.status();
  const exec::Feed feeds[] = {exec::Feed::Of(std::span<const double>(points))};
  EXPECT_EQ((*program)->Run(feeds), OkStatus());
  const auto values = (*program)->Fetch<double>((*program)->FindFetch("y"));
  const auto gradients = (*program)->Fetch<double>((*program)->FindFetch("gradient"));
  return {{values.begin(), values.end()}, {gradients.begin(), gradients.end()}};
}

bool IsElementwise(const std::string& name) {
  return name != "softmax" && name != "log_softmax" && name != "sparsemax";
}

// Computes Sparsemax like Keras, which uses the sum of the cumulative sums over the support instead
// of the sum of the elements.
std::vector<double> KerasSparsemax(const std::vector<double>& x) {
  std::vector<double> sorted = x;
  std::ranges::sort(sorted, std::greater());
  double sum = 0, total = 0, count = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    if (sorted[i] - (sum - 1) / static_cast<double>(i + 1) <= 0) continue;
    total += sum;
    ++count;
  }
  std::vector<double> y = x;
  for (double& value : y) value = std::max(value - (total - 1) / count, 0.0);
  return y;
}

TEST(Activations, SparsemaxIsThatOfKeras) {
  for (const std::vector<double>& x : std::vector<std::vector<double>>{
           {0.2, 0.5, 0.1}, {3, 2, 1}, {0.3, 0.3, -0.1, 0.2}, {-5, -5}, {7}}) {
    const Results results = Evaluated(ActivationKind::kSparsemax, x);
    const std::vector<double> expected = KerasSparsemax(x);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(results.values[i], expected[i], 1e-12) << i;
  }
  const std::vector<double> x = {0.2, 0.5, 0.1, 0.37};
  const Results results = Evaluated(ActivationKind::kSparsemax, x);
  for (size_t i = 0; i < x.size(); ++i) {
    constexpr double kStep = 1e-6;
    std::vector<double> more = x, less = x;
    more[i] += kStep;
    less[i] -= kStep;
    double slope = 0;
    for (size_t j = 0; j < x.size(); ++j)
      slope += (KerasSparsemax(more)[j] - KerasSparsemax(less)[j]) / (2 * kStep);
    EXPECT_NEAR(results.gradients[i], slope, 1e-6) << i;
  }
}

TEST(Activations, FollowTheirDefinitions) {
  // None of the functions has a corner at any of these points.
  const std::vector<double> points = {-20, -2.7, -0.7, -0.3, 0.3, 0.7, 2.7, 20};
  const std::vector<std::string> names = ActivationNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!IsElementwise(names[i])) continue;
    SCOPED_TRACE(names[i]);
    ASSERT_TRUE(Definitions().contains(names[i]));
    const Definition& definition = Definitions().at(names[i]);
    const Results results = Evaluated(static_cast<ActivationKind>(i), points);
    for (size_t p = 0; p < points.size(); ++p) {
      const double x = points[p], step = 1e-6, value = definition.value(x);
      EXPECT_NEAR(results.values[p], value, 1e-8 * (1 + std::abs(value))) << x;
      const double slope = (definition.value(x + step) - definition.value(x - step)) / (2 * step);
      EXPECT_NEAR(results.gradients[p], slope, 1e-6 * (1 + std::abs(slope))) << x;
    }
  }
}

// Zero is a common input: padding, black pixels, and biases before the first step are zero.
TEST(Activations, HaveTensorFlowsGradientAtZero) {
  const std::vector<std::string> names = ActivationNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!Definitions().contains(names[i])) continue;
    const Results results = Evaluated(static_cast<ActivationKind>(i), {0});
    EXPECT_NEAR(results.values[0], Definitions().at(names[i]).value(0), 1e-12) << names[i];
    EXPECT_NEAR(results.gradients[0], Definitions().at(names[i]).gradient_at_zero, 1e-12)
        << names[i];
  }
}

TEST(Activations, KeepNaN) {
  const std::vector<std::string> names = ActivationNames();
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(std::isnan(Evaluated(static_cast<ActivationKind>(i), {kNaN}).values[0]))
        << names[i];
  }
}

}  // namespace
}  // namespace tfjob::model
