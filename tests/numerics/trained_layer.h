// Runs a layer in a training step. The layer's random numbers depend only on the step and a fixed
// seed.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/layer.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {

using Values = std::vector<float>;

inline float Coefficient(size_t i) {
  return static_cast<float>(i * 7 % 11) - 4.5f;
}

// Contains the output of a layer in a training step, and the gradient of Σ Coefficient(i) y[i] with
// respect to x.
struct Trained {
  Values y, gradient;
};

inline Trained Train(const LayerConfig& layer, const Shape& shape, const Values& x, int64_t step) {
  graph::Builder b;
  const graph::Output in = Placeholder(b, "x", DType::kFloat32, shape);
  LayerCall call{.b = b,
                 .inputs = {in},
                 .training = true,
                 .step = Placeholder(b, "step", DType::kInt64, {}),
                 .seed = Placeholder(b, "seed", DType::kInt64, {})};
  const graph::Output y = layer.Apply(call)[0];
  Tensor coefficients(DType::kFloat32, b.shape(y));
  for (size_t i = 0; i < coefficients.data<float>().size(); ++i)
    coefficients.data<float>()[i] = Coefficient(i);
  const graph::Output sum = Sum(b, Mul(b, y, Const(b, coefficients)), {});
  const graph::Output wrt[] = {in};
  b.AddFetch("y", y);
  b.AddFetch("gradient", Gradients(b, sum, wrt)[0]);
  const auto built = std::move(b).Finish();
  EXPECT_TRUE(built.ok()) << built.status();
  variables::VariableStore store = TestStore();
  const auto program = exec::Compile(*built, store, TestDevice());
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<exec::Feed> feeds((*program)->feeds().size());
  feeds[static_cast<size_t>((*program)->FindFeed("x"))] = exec::Feed::Of(std::span<const float>(x));
  const int64_t seed = 3;
  const auto feed = [&](const char* name, const int64_t& value) {
    const int at = (*program)->FindFeed(name);
    if (at >= 0) feeds[static_cast<size_t>(at)] = exec::Feed::Of(value);
  };
  feed("step", step);
  feed("seed", seed);
  EXPECT_EQ((*program)->Run(feeds), OkStatus());
  const auto fetch = [&](const char* name) {
    const auto values = (*program)->Fetch<float>((*program)->FindFetch(name));
    return Values(values.begin(), values.end());
  };
  return {fetch("y"), fetch("gradient")};
}

// Checks that Σ gradient x = Σ coefficient y, which is true if y is a linear function of x.
inline void ExpectGradientOfLinear(const Trained& trained, const Values& x) {
  double left = 0, right = 0;
  for (size_t i = 0; i < x.size(); ++i) left += double(trained.gradient[i]) * x[i];
  for (size_t i = 0; i < trained.y.size(); ++i) right += double(Coefficient(i)) * trained.y[i];
  EXPECT_NEAR(left, right, 1e-5 * std::fabs(right) + 1e-2);
}

}  // namespace tfjob::model
