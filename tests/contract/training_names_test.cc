// Checks that the training file allows exactly the choices that the packages implement, and that
// the documentation states the defaults of the packages.
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/file.h"
#include "runtime/config/keys.h"
#include "runtime/model/layer_table.h"
#include "runtime/model/losses/loss.h"
#include "runtime/model/metrics/metric.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob {
namespace {

const std::vector<std::string>& Choices(const char* key) {
  return config::FindKey(key)->choices;
}

TEST(TrainingNames, LossesAreTheModels) {
  for (const std::string& name : Choices("loss.name")) {
    // The name of a loss that a model computes has no formula of its own.
    EXPECT_EQ(model::ParseLoss(name).ok(), name != "custom") << name;
  }
  for (int kind = 0; kind <= static_cast<int>(model::LossKind::kCategoricalHinge); ++kind) {
    EXPECT_EQ(Choices("loss.name")[static_cast<size_t>(kind)],
              model::Name(static_cast<model::LossKind>(kind)));
  }
}

TEST(TrainingNames, MetricsAreTheModels) {
  for (const std::string& name : Choices("metrics"))
    EXPECT_TRUE(model::ParseMetric(name).ok()) << name;
  EXPECT_EQ(Choices("metrics").size(), model::MetricNames().size());
}

TEST(TrainingNames, OptimizersAndTheirDefaultsAreTheOptimizers) {
  for (const std::string& name : Choices("optimizer.name")) {
    const StatusOr<optimizer::Kind> kind = optimizer::ParseKind(name);
    ASSERT_TRUE(kind.ok()) << kind.status();
    const optimizer::Optimizer defaults = optimizer::Optimizer::Default(*kind);
    EXPECT_EQ(defaults.learning_rate, name == "sgd" ? 0.01 : 0.001);
    // In "0.9; adadelta 0.95", the first number is the general default, and the second is the
    // default for adadelta.
    const auto documented = [&](const char* key) {
      const std::string& text = config::FindKey(key)->unset_doc;
      const size_t own = text.find(name + " ");
      return std::atof(text.c_str() + (own == std::string::npos ? 0 : own + name.size()));
    };
    EXPECT_EQ(documented("optimizer.momentum"), defaults.momentum);
    EXPECT_EQ(documented("optimizer.initial_accumulator_value"),
              defaults.initial_accumulator_value);
    EXPECT_EQ(documented("optimizer.beta_1"), defaults.beta_1);
    EXPECT_EQ(documented("optimizer.beta_2"), defaults.beta_2);
    EXPECT_EQ(documented("optimizer.rho"), defaults.rho);
    EXPECT_EQ(documented("optimizer.epsilon"), defaults.epsilon);
    EXPECT_FALSE(defaults.nesterov);
    EXPECT_FALSE(defaults.centered);
    EXPECT_FALSE(defaults.amsgrad);
    EXPECT_EQ(documented("optimizer.learning_rate_power"), defaults.learning_rate_power);
    EXPECT_EQ(documented("optimizer.ema_momentum"), defaults.ema_momentum);
    EXPECT_EQ(defaults.weight_decay, name == "adamw" ? 0.004 : 0);
  }
}

TEST(TrainingNames, ThePageDescribesEveryLayer) {
  const StatusOr<std::string> page = ReadFile("docs/training-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const std::string& name : model::LayerClasses()) {
    EXPECT_NE(page->find(StrCat("\n| `", name, "` |")), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tfjob
