// Tests the clipping of accumulated gradients: compares training with loops written in this test,
// and gradients by rows with dense gradients. As in Keras 3, only the mean is clipped, and only in
// steps that update the variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/embedding.h"
#include "runtime/model/shape.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using optimizer::ClipKind;
using optimizer::Clipping;
using Values = std::vector<float>;

constexpr int64_t kEvery = 3, kSteps = 8;

float Feature(int64_t step, int64_t i) {
  return static_cast<float>((step * 5 + i * 3) % 7) - 2.5f;
}

BuildOptions Options(const Clipping& clipping, double rate) {
  optimizer::Optimizer sgd;
  sgd.learning_rate = rate;
  sgd.gradient_accumulation_steps = kEvery;
  return {.mode = Mode::kTrain,
          .batch_size = 1,
          .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                          .labels = {DType::kFloat32, {1}}}},
          .optimizer = sgd,
          .clipping = clipping};
}

// Trains a model, whose variables start at 0.25, for kSteps steps of one example each. `features`
// returns the features for a step.
class Training {
 public:
  template <typename T>
  Training(const Model& model, const BuildOptions& options,
           const std::function<std::vector<T>(int64_t)>& features) {
    const StatusOr<BuiltGraph> built = Build(model, options);
    EXPECT_TRUE(built.ok()) << built.status();
    if (!built.ok()) return;
    for (const VariableSpec& variable : built->variables) {
      auto made =
          store_.Create(variable.name, variable.dtype, variable.shape, variables::Kind::kTrainable);
      Tensor start(variable.dtype, variable.shape);
      std::ranges::fill(start.data<float>(), 0.25f);
      EXPECT_EQ((*made)->FromTensor(start), OkStatus());
    }
    auto program = exec::Compile(built->graph, store_, TestDevice());
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return;
    for (int64_t step = 0; step < kSteps; ++step) Step(**program, step, features(step));
  }

  Values Get(const std::string& variable) const {
    const Tensor tensor = store_.Find(variable)->ToTensor();
    return {tensor.data<float>().begin(), tensor.data<float>().end()};
  }

 private:
  template <typename T>
  void Step(exec::Program& program, int64_t step, const std::vector<T>& features) {
    const Values label = {-0.5f};
    const int64_t seed = 0;
    std::vector<exec::Feed> feeds(program.feeds().size());
    const auto feed = [&](const char* name, const exec::Feed& value) {
      const int at = program.FindFeed(name);
      if (at >= 0) feeds[static_cast<size_t>(at)] = value;
    };
    feed(kFeatures, exec::Feed::Of(std::span<const T>(features)));
    feed(kLabels, exec::Feed::Of(std::span<const float>(label)));
    feed(kStep, exec::Feed::Of(step));
    feed(kSeed, exec::Feed::Of(seed));
    EXPECT_EQ(program.Run(feeds), OkStatus());
  }

  variables::VariableStore store_ = TestStore();
};

// Clips the gradients of w0, w1 and the bias, using the formulas in optimizer/clipping.h.
std::vector<double> Clipped(std::vector<double> g, const Clipping& clipping) {
  const double c = clipping.limit, kernel = std::hypot(g[0], g[1]);
  const double all = std::hypot(kernel, g[2]);
  if (clipping.kind == ClipKind::kValue) {
    for (double& value : g) value = std::clamp(value, -c, c);
  } else if (clipping.kind == ClipKind::kNorm) {
    g = {g[0] * c / std::max(kernel, c), g[1] * c / std::max(kernel, c),
         g[2] * c / std::max(std::fabs(g[2]), c)};
  } else if (clipping.kind == ClipKind::kGlobalNorm) {
    for (double& value : g) value *= std::min(1.0, c / all);
  }
  return g;
}

// Returns w0, w1 and the bias of the model y = w·x + b after kSteps steps with the label -0.5.
std::vector<double> Expected(const Clipping& clipping, double rate) {
  std::vector<double> w = {0.25, 0.25, 0.25}, sum = {0, 0, 0};
  for (int64_t step = 0; step < kSteps; ++step) {
    const double x[] = {Feature(step, 0), Feature(step, 1), 1};
    const double error = w[0] * x[0] + w[1] * x[1] + w[2] + 0.5;
    for (size_t i = 0; i < 3; ++i) sum[i] += 2 * error * x[i] / kEvery;
    if ((step + 1) % kEvery != 0) continue;
    const std::vector<double> clipped = Clipped(sum, clipping);
    for (size_t i = 0; i < 3; ++i) w[i] -= rate * clipped[i];
    sum = {0, 0, 0};
  }
  return w;
}

TEST(AccumulatedClipping, ClipsTheMeanWhenTheUpdateIsDue) {
  constexpr double kRate = 0.05;
  const Model model = Sequential("m", {{.name = "dense", .config = layers::Dense{.units = 1}}});
  const std::vector<double> unclipped = Expected({}, kRate);
  for (const Clipping& clipping :
       {Clipping{}, Clipping{ClipKind::kValue, 0.4}, Clipping{ClipKind::kNorm, 0.6},
        Clipping{ClipKind::kGlobalNorm, 0.7}}) {
    SCOPED_TRACE(static_cast<int>(clipping.kind));
    BuildOptions options = Options(clipping, kRate);
    options.features = Features({2});
    const Training training(model, options, std::function([](int64_t step) {
                              return Values{Feature(step, 0), Feature(step, 1)};
                            }));
    const std::vector<double> expected = Expected(clipping, kRate);
    EXPECT_EQ(expected == unclipped, clipping.kind == ClipKind::kNone);
    const Values kernel = training.Get("dense/kernel"), bias = training.Get("dense/bias");
    EXPECT_NEAR(kernel[0], expected[0], 1e-5);
    EXPECT_NEAR(kernel[1], expected[1], 1e-5);
    EXPECT_NEAR(bias[0], expected[2], 1e-5);
  }
}

// Compares the accumulators as well as the variables. The accumulators are not zero, because the
// last step does not update the variables.
TEST(AccumulatedClipping, GradientsByRowsGiveWhatDenseOnesGive) {
  const Model model = Sequential(
      "m", {{.name = "table", .config = layers::Embedding{.input_dim = 5, .output_dim = 3}},
            {.name = "flat", .config = layers::Flatten{}},
            {.name = "dense", .config = layers::Dense{.units = 1}}});
  const std::function ids = [](int64_t step) {
    return std::vector<int32_t>{static_cast<int32_t>(step % 4), static_cast<int32_t>(step * 3 % 5)};
  };
  const auto train = [&](const Clipping& clipping, bool rows) {
    BuildOptions options = Options(clipping, 0.3);
    options.features = {{DType::kInt32, {2}}};
    options.gradient_rows = rows;
    const Training training(model, options, ids);
    Values all;
    for (const char* name : {"table/embeddings", "table/embeddings/gradient_accumulator",
                             "dense/kernel", "dense/bias"}) {
      const Values values = training.Get(name);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const Values unclipped = train({}, true);
  for (const Clipping& clipping :
       {Clipping{ClipKind::kNorm, 0.02}, Clipping{ClipKind::kGlobalNorm, 0.05}}) {
    const Values dense = train(clipping, false), rows = train(clipping, true);
    ASSERT_EQ(dense.size(), rows.size());
    float change = 0;
    for (size_t i = 0; i < dense.size(); ++i) {
      EXPECT_NEAR(rows[i], dense[i], 1e-6) << i;
      change = std::max(change, std::fabs(dense[i] - unclipped[i]));
    }
    EXPECT_GT(change, 1e-3f) << "the limit is never reached";
  }
}

}  // namespace
}  // namespace tfjob::model
