// Compares clipped gradients with the results of the optimizers of Keras 3.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layers/dense.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using layers::Dense;

using optimizer::ClipKind;
using optimizer::Clipping;
using Values = std::vector<float>;

// Describes a test case for the model y = w·x + b with w = b = 0 and a squared error. For the
// features x and the label -0.5, the gradient of w is x, and the gradient of b is 1.
struct Case {
  Clipping clipping;
  Values kernel;
  float bias;
};

BuildOptions Options(const Clipping& clipping) {
  return {.mode = Mode::kTrain,
          .batch_size = 1,
          .features = Features({2}),
          .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                          .labels = {DType::kFloat32, {}}}},
          .clipping = clipping};
}

struct Gradients {
  Values kernel;
  float bias;
};

class ClippingTest : public testing::Test {
 protected:
  // Returns the gradients that a graph with these options fetches. If there is an optimizer,
  // returns the updates by SGD with a learning rate of 1 instead.
  Gradients Run(const BuildOptions& options, const Values& features) {
    const Model model = Sequential("m", {{.name = "dense", .config = Dense{.units = 1}}});
    const StatusOr<BuiltGraph> built = Build(model, options);
    EXPECT_TRUE(built.ok()) << built.status();
    variables::VariableStore store = TestStore();
    for (const VariableSpec& variable : built->variables) {
      EXPECT_TRUE(
          store.Create(variable.name, variable.dtype, variable.shape, variables::Kind::kTrainable)
              .ok());
    }
    auto program = exec::Compile(built->graph, store, TestDevice());
    EXPECT_TRUE(program.ok()) << program.status();
    const Values label = {-0.5f};
    const int64_t step = 0, seed = 0;
    std::vector<exec::Feed> feeds((*program)->feeds().size());
    const auto feed = [&](const char* name, const exec::Feed& value) {
      const int at = (*program)->FindFeed(name);
      if (at >= 0) feeds[static_cast<size_t>(at)] = value;
    };
    feed(kFeatures, exec::Feed::Of(std::span<const float>(features)));
    feed(kLabels, exec::Feed::Of(std::span<const float>(label)));
    feed(kStep, exec::Feed::Of(step));
    feed(kSeed, exec::Feed::Of(seed));
    EXPECT_EQ((*program)->Run(feeds), OkStatus());
    if (options.optimizer) {
      const Tensor kernel = store.Find("dense/kernel")->ToTensor();
      return {{-kernel.data<float>()[0], -kernel.data<float>()[1]},
              -store.Find("dense/bias")->ToTensor().data<float>()[0]};
    }
    const auto fetch = [&](const char* name) {
      return (*program)->Fetch<float>(
          (*program)->FindFetch(ContributionName(Change::kGradient, name)));
    };
    const auto kernel = fetch("dense/kernel");
    return {{kernel[0], kernel[1]}, fetch("dense/bias")[0]};
  }
};

TEST_F(ClippingTest, HasTheValuesOfKeras) {
  const Case cases[] = {
      {{}, {3, 4}, 1},
      {{ClipKind::kValue, 3.5}, {3, 3.5f}, 1},
      {{ClipKind::kValue, 0.5}, {0.5f, 0.5f}, 0.5f},
      {{ClipKind::kNorm, 2.5}, {1.5f, 2}, 1},  // the norms are 5 and 1
      {{ClipKind::kNorm, 0.5}, {0.3f, 0.4f}, 0.5f},
      {{ClipKind::kNorm, 50}, {3, 4}, 1},
      {{ClipKind::kGlobalNorm, 2}, {1.1766968f, 1.5689291f}, 0.39223227f},  // √26
      {{ClipKind::kGlobalNorm, 50}, {3, 4}, 1},
  };
  optimizer::Optimizer sgd;
  sgd.learning_rate = 1;
  for (const Case& c : cases) {
    for (bool applied : {false, true}) {
      BuildOptions options = Options(c.clipping);
      if (applied) options.optimizer = sgd;
      const Gradients got = Run(options, {3, 4});
      const std::string what = StrCat(static_cast<int>(c.clipping.kind), " ", c.clipping.limit,
                                      applied ? " applied" : " fetched");
      EXPECT_FLOAT_EQ(got.kernel[0], c.kernel[0]) << what;
      EXPECT_FLOAT_EQ(got.kernel[1], c.kernel[1]) << what;
      EXPECT_FLOAT_EQ(got.bias, c.bias) << what;
    }
  }
}

TEST_F(ClippingTest, TreatsWhatIsNotFiniteAsKerasDoes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Run(Options({ClipKind::kValue, 2}), {1e30f, 1e30f}).kernel[0], 2);
  const Gradients by_norm = Run(Options({ClipKind::kNorm, 2}), {nan, 1});
  EXPECT_TRUE(std::isnan(by_norm.kernel[0]) && std::isnan(by_norm.kernel[1]));
  const Gradients by_global_norm = Run(Options({ClipKind::kGlobalNorm, 2}), {1e30f, 1e30f});
  EXPECT_TRUE(std::isnan(by_global_norm.kernel[0]) && std::isnan(by_global_norm.bias))
      << "an infinite norm must not turn the gradients into zeros";
}

}  // namespace
}  // namespace tfjob::model
