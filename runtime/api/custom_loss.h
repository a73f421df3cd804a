// Defines losses and metrics that a program composes from operations.
//
//   Symbol y = Input{.shape = {1}}, p = Input{.shape = {1}};  // the label and the prediction
//   Model quantile = Functional({y, p}, ops::Maximum(0.9 * (y - p), 0.1 * (p - y)));
//   session.Compile(model, {.loss = CustomLoss{.values = quantile}});
#pragma once

#include <string>

#include "arguments.h"
#include "model.h"
#include "optimizer.h"

namespace tfjob::api {

// A loss that a model computes. The inputs of `values` are the labels and the predictions, in this
// order, with the shapes that one example has. The labels have the type of the first input; the
// predictions are float32. `values` has no variables, and one output: a float32 value for each
// example, for each position (all axes of the prediction except the last), or for each element of
// the prediction. Sample weights, masks and `reduction` apply as to other losses. If there is one
// value for each example, the loss cannot be combined with a mask, or with sample weights for each
// position. `values` may contain no activity_regularizer, and its output may have no mask.
//
// A .keras or .h5 file of a model with such a loss lacks the settings of compile().
struct CustomLoss {
  Model values;
  std::string reduction = {};  // "sum_over_batch_size" (the default) or "sum"

  operator Loss() const;
};

// A metric that is the mean of the values that a model computes. The inputs and the output of
// `values` are as in CustomLoss, but the loss determines the form of the labels in the data. Class
// numbers are converted to the type of the first input.
//
//   Model errors = Functional({y, p}, ops::Abs(y - p));
//   CustomMetric metric = {.name = "error", .values = errors};
//   session.Compile(model, {.loss = "mean_squared_error", .metrics = {metric}});
//
// A callback that monitors the metric needs a `mode`, because the library cannot know whether
// larger values are better. A .keras or .h5 file of the model lacks the metric.
struct CustomMetric {
  std::string name = {};  // in results; default: "custom"
  Model values = {};

  operator Named() const;
};

}  // namespace tfjob::api
