// Implements LinearRegressor and LinearClassifier, and the parts that canned estimators share.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/api/estimators/canned_estimators.h"
#include "runtime/api/estimators/estimator_data.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"

namespace tfjob::api {
namespace {

// TensorFlow's default learning rate (tensorflow_estimator/python/estimator/canned/linear.py).
constexpr double kLinearRate = 0.2;

Optimizer LinearOptimizer(const std::optional<Optimizer>& given, size_t columns) {
  if (given) return WithDefaultRate(*given, kLinearRate);
  return Ftrl{.learning_rate = std::min(kLinearRate, 1 / std::sqrt(static_cast<double>(columns)))};
}

// Returns a linear model with this number of outputs.
StatusOr<Model> LinearModel(const std::vector<NumericColumn>& columns, int64_t outputs) {
  ASSIGN_OR_RETURN(const FeatureInputs made, InputsOf(columns));
  const Symbol logits =
      Dense{.units = outputs, .kernel_initializer = "zeros", .name = "linear_model"}(made.features);
  Model model = Functional(made.inputs, logits, "linear");
  RETURN_IF_ERROR(FromPublic(model.status()));
  return model;
}

tfjob::Status CheckColumn(const NumericColumn& column, std::set<std::string>& keys) {
  if (column.key.empty())
    return InvalidArgument("feature_columns: expected a key for each column, got \"\"");
  if (!keys.insert(column.key).second)
    return InvalidArgument("feature_columns: two columns have the key \"", column.key, "\"");
  for (const int64_t length : column.shape) {
    if (length < 1)
      return InvalidArgument("feature_columns: column ", column.key,
                             ": shape: expected lengths of at least 1, got ", length);
  }
  if (!column.shape.empty()) return OkStatus();
  return InvalidArgument("feature_columns: column ", column.key,
                         ": shape: expected at least one length, such as {1}");
}

}  // namespace

StatusOr<FeatureInputs> InputsOf(const std::vector<NumericColumn>& columns) {
  if (columns.empty()) return InvalidArgument("feature_columns: expected at least one column");
  std::vector<Symbol> inputs, features;
  std::set<std::string> keys;
  for (const NumericColumn& column : columns) {
    RETURN_IF_ERROR(CheckColumn(column, keys));
    const Symbol input = Input{.shape = column.shape, .name = column.key};
    inputs.push_back(input);
    features.push_back(column.shape.size() > 1 ? Flatten{}(input) : input);
  }
  if (features.size() == 1) return FeatureInputs{std::move(inputs), features[0]};
  return FeatureInputs{std::move(inputs), Concatenate{}(features)};
}

Optimizer WithDefaultRate(const Optimizer& optimizer, double rate) {
  const FormData& form = Access::Data(optimizer);
  if (form.arguments.contains("learning_rate") || form.arguments.contains("learning_rate_schedule"))
    return optimizer;
  Form with_rate(form.name.c_str());
  with_rate.data() = form;
  return Access::MakeOptimizer(LearningRate(rate), std::move(with_rate));
}

StatusOr<int64_t> LogitsOf(int64_t n_classes) {
  if (n_classes >= 2) return n_classes == 2 ? 1 : n_classes;
  return InvalidArgument("n_classes: expected at least 2, got ", n_classes);
}

CompileOptions OptionsOfClassifier(int64_t n_classes, const Optimizer& optimizer) {
  if (n_classes > 2) {
    return {.optimizer = optimizer,
            .loss = SparseCategoricalCrossentropy{.from_logits = true},
            .metrics = {"accuracy"}};
  }
  // A logit above 0 corresponds to a probability above 1/2.
  return {.optimizer = optimizer,
          .loss = BinaryCrossentropy{.from_logits = true},
          .metrics = {{"binary_accuracy", {{"threshold", 0.0}}}}};
}

LinearRegressor::operator Estimator() const {
  const StatusOr<Model> model = LinearModel(feature_columns, label_dimension);
  if (!model.ok()) return InvalidEstimator(config, Annotate(model.status(), "LinearRegressor"));
  return Estimator(
      *model,
      {.optimizer = LinearOptimizer(optimizer, feature_columns.size()), .loss = MeanSquaredError{}},
      config);
}

LinearClassifier::operator Estimator() const {
  const StatusOr<int64_t> logits = LogitsOf(n_classes);
  const StatusOr<Model> model =
      logits.ok() ? LinearModel(feature_columns, *logits) : logits.status();
  if (!model.ok()) return InvalidEstimator(config, Annotate(model.status(), "LinearClassifier"));
  return Estimator(
      *model, OptionsOfClassifier(n_classes, LinearOptimizer(optimizer, feature_columns.size())),
      config);
}

}  // namespace tfjob::api
