// Builds the parts that LinearRegressor, LinearClassifier and DNNClassifier share. Private to this
// package.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/api/access.h"
#include "runtime/api/estimator.h"

namespace tfjob::api {

// The inputs of a model, one per column, and the concatenation of their features.
struct FeatureInputs {
  std::vector<Symbol> inputs;
  Symbol features;
};

// Returns InvalidArgument if there are no columns, or if a column has no key, the key of another
// column, or an invalid shape.
StatusOr<FeatureInputs> InputsOf(const std::vector<NumericColumn>& columns);

// Returns the optimizer, with `rate` as its learning rate if it has none.
Optimizer WithDefaultRate(const Optimizer& optimizer, double rate);

// Returns the number of logits of a classifier: 1 for two classes, or else one per class. Returns
// InvalidArgument if there are fewer than two classes.
StatusOr<int64_t> LogitsOf(int64_t n_classes);

// Returns the loss and the metrics of a classifier.
CompileOptions OptionsOfClassifier(int64_t n_classes, const Optimizer& optimizer);

}  // namespace tfjob::api
