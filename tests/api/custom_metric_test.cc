// Tests metrics that programs define.
#include <gtest/gtest.h>

#include "tests/api/programs.h"

namespace {

using Values = tj::Symbol(const tj::Symbol& labels, const tj::Symbol& predictions);

tj::Model ModelOf(Values values, int64_t width = 1, const std::string& dtype = "float32") {
  const tj::Symbol y = tj::Input{.shape = {1}, .dtype = dtype}, p = tj::Input{.shape = {width}};
  return tj::Functional({y, p}, values(y, p));
}

tj::Symbol Errors(const tj::Symbol& y, const tj::Symbol& p) {
  return tj::ops::Abs(y - p);
}

// Is 1 where y is the class with the larger score; if the scores are equal, that is class 0.
tj::Symbol FirstIsLarger(const tj::Symbol& y, const tj::Symbol& p) {
  const tj::Symbol first = tj::ops::GetItem(p, {tj::ops::Key::All(), tj::ops::Key::Range({}, 1)});
  const tj::Symbol second = tj::ops::GetItem(p, {tj::ops::Key::All(), tj::ops::Key::Range(1, {})});
  const tj::Symbol guess = tj::ops::Cast(second > first, "float32");
  return tj::ops::Squeeze(tj::ops::Cast(tj::ops::Equal(guess, y), "float32"), {1});
}

// Two numbers per example, and their sum with weights.
tj::data::Arrays Sums(int64_t examples, bool weighted) {
  const tj::Tensor x = Points(examples).x;
  tj::data::Arrays arrays = {.x = x, .y = tj::Tensor(tj::DType::kFloat32, {examples, 1})};
  if (weighted) arrays.sample_weight = tj::Tensor(tj::DType::kFloat32, {examples});
  for (size_t i = 0; i < static_cast<size_t>(examples); ++i) {
    arrays.y.float32()[i] = 2 * x.float32()[2 * i] - x.float32()[2 * i + 1];
    if (weighted) arrays.sample_weight.float32()[i] = static_cast<float>(i % 3);
  }
  return arrays;
}

tj::Model Regression() {
  return tj::Sequential({tj::Input{.shape = {2}}, tj::Dense{.units = 1}});
}

tj::Result<tj::CompiledModel> CompiledWith(
    const tj::CompileOptions& options, const tj::Model& model = Regression(),
    const tj::Strategy& strategy = tj::Strategy::OneDevice()) {
  return tj::Session(strategy, {.threads = 1}).Compile(model, options);
}

tj::CompileOptions WithErrors() {
  const tj::CustomMetric errors = {.name = "errors", .values = ModelOf(Errors)};
  return {.optimizer = tj::SGD{.learning_rate = 0.1},
          .loss = "mean_squared_error",
          .metrics = {errors, "mean_absolute_error"},
          .weighted_metrics = {errors, "mean_absolute_error"}};
}

TEST(CustomMetric, EqualsTheSameBuiltInMetric) {
  for (const bool weighted : {false, true}) {
    for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
      auto model = CompiledWith(WithErrors(), Regression(), strategy);
      ASSERT_TRUE(model.ok()) << model.status();
      const tj::data::Arrays examples = Sums(50, weighted);
      const tj::Dataset validation = Sums(20, weighted);
      tj::FitOptions options = Quietly(2);
      options.validation = &validation;
      const auto history = model->Fit(examples, options);
      ASSERT_TRUE(history.ok()) << history.status();
      for (const std::string prefix : {"", "weighted_", "val_", "val_weighted_"}) {
        EXPECT_EQ(history->values.at(prefix + "errors"),
                  history->values.at(prefix + "mean_absolute_error"))
            << prefix;
      }
      const tj::Metrics metrics = model->Evaluate(examples).value();
      EXPECT_GT(metrics["errors"], 0);
      EXPECT_EQ(metrics["errors"], metrics["mean_absolute_error"]);
      EXPECT_EQ(metrics["weighted_errors"] == metrics["errors"], !weighted);
    }
  }
}

TEST(CustomMetric, ConvertsClassNumbers) {
  tj::CompileOptions options = Options();
  options.metrics.push_back(
      tj::CustomMetric{.name = "own", .values = ModelOf(FirstIsLarger, 2, "float32")});
  auto model = CompiledWith(options, Classifier());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto history = model->Fit(Points(100), Quietly(3));
  ASSERT_TRUE(history.ok()) << history.status();
  const tj::Metrics metrics = model->Evaluate(Points(100)).value();
  EXPECT_GT(metrics["own"], 0.5);
  EXPECT_EQ(metrics["own"], metrics["accuracy"]);
}

TEST(CustomMetric, OfOneOutputHasThePrefixOfTheOutput) {
  const tj::Symbol x = tj::Input{.shape = {2}};
  const tj::Model two = tj::Functional(
      x, {tj::Dense{.units = 1, .name = "a"}(x), tj::Dense{.units = 1, .name = "b"}(x)});
  const tj::CustomMetric errors = {.values = ModelOf(Errors)};
  auto model = CompiledWith(
      {.loss = "mean_squared_error", .outputs = {{"b", {.loss = "huber", .metrics = {errors}}}}},
      two);
  ASSERT_TRUE(model.ok()) << model.status();
  const tj::data::Arrays sums = Sums(20, false);
  const auto metrics =
      model->Evaluate(tj::data::Arrays{.x = sums.x, .targets = {{"a", sums.y}, {"b", sums.y}}});
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_GT((*metrics)["b_custom"], 0);
}

TEST(CustomMetric, NeedsAModeInCallbacks) {
  for (const std::string mode : {"auto", "min"}) {
    tj::CompiledModel model = CompiledWith(WithErrors()).value();
    tj::FitOptions options = Quietly(2);
    options.callbacks = {tj::EarlyStopping{.monitor = "errors", .mode = mode}};
    const auto history = model.Fit(Sums(20, false), options);
    EXPECT_EQ(history.ok(), mode == "min") << history.status();
    if (mode == "auto")
      EXPECT_NE(history.status().message().find("set mode to max or min"), std::string::npos);
  }
}

TEST(CustomMetric, IsMissingInFilesForKeras) {
  tj::CompiledModel model = CompiledWith(WithErrors()).value();
  ASSERT_TRUE(model.Save(Temp("metric.keras")).ok());
  const auto loaded =
      tj::Session(tj::Strategy::OneDevice()).Load(testing::TempDir() + "/metric.keras");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  tj::CompiledModel again = *loaded;
  const tj::Metrics metrics = again.Evaluate(Sums(20, false)).value();
  EXPECT_TRUE(metrics.has("mean_absolute_error"));
  EXPECT_FALSE(metrics.has("errors"));
}

std::string ErrorOf(const tj::CustomMetric& metric) {
  auto model = CompiledWith({.loss = "mean_squared_error", .metrics = {metric}});
  if (!model.ok()) return model.status().message();
  return model->Evaluate(Sums(8, false)).status().message();
}

TEST(CustomMetric, IsChecked) {
  const auto expect = [](const tj::CustomMetric& metric, const std::string& expected) {
    const std::string error = ErrorOf(metric);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  expect({.name = "m"}, "there is no model");
  const tj::Symbol x = tj::Input{.shape = {1}};
  expect({.name = "m", .values = tj::Functional(x, tj::ops::Abs(x))},
         "expected a model with two inputs");
  expect({.name = "m", .values = ModelOf([](const tj::Symbol& y, const tj::Symbol& p) {
                         return tj::Dense{.units = 1}(y - p);
                       })},
         "metric m: expected a loss without variables");
  expect({.name = "m", .values = ModelOf(Errors, 3)}, "metric m");
  expect({.name = "m", .values = ModelOf(Errors, 1, "int64")}, "metric m");
}

}  // namespace
