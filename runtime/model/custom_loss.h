// Computes losses and metrics that users define as models. Such a model has two inputs, the labels
// and the predictions of one output, and one output: the loss of each example, or of each place
// (loss.h), or the values that the metric averages. It has no variables.
#pragma once

#include <string_view>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/model/losses/loss.h"
#include "runtime/model/metrics/metric.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Returns InvalidArgument unless `model` has two inputs that state their shapes, and one output.
Status CheckLossModel(const Model& model);

// Returns the type of the loss's label input. `labels` is the shape of one example's labels in the
// data. CheckLossModel must have accepted the model.
TensorType LabelsOf(const Model& loss_model, const Shape& labels);

// Returns InvalidArgument if `loss.model` does not accept predictions of shape `output` and labels
// of this type, has variables, or does not compute float32 values of shape [] (one per example), of
// shape PlacesOf(output), or of shape `output`. Also returns InvalidArgument if a layer of the
// model adds a penalty, or if its output has a mask. All shapes are for one example.
Status CheckCustomLoss(const Loss& loss, const Shape& output, const TensorType& labels);

// Returns the values of `loss.model`, as float32 [b] or [b, …places]. If the model computes a value
// for each element of the prediction, returns the means over the last axis. CheckCustomLoss must
// have accepted the shapes.
graph::Output CustomLossValues(graph::Builder& b, const Loss& loss, graph::Output prediction,
                               graph::Output labels);

// Returns InvalidArgument if the model of the metric, which is of the kind kCustom, does not accept
// predictions and labels of these types, or if CheckCustomLoss would reject the model as that of a
// loss. Labels of the type int64 are converted if the model expects another type.
Status CheckCustomMetric(const Metric& metric, const Shape& output, const TensorType& labels);

// Returns the sums of the batch for such a metric (MetricSums). CheckCustomMetric must have
// accepted the types. Fails if CheckPlaces rejects the shape of the values.
graph::Output CustomMetricSums(graph::Builder& b, const Metric& metric, graph::Output prediction,
                               graph::Output labels, graph::Output mask,
                               graph::Output sample_weights);

// Returns InvalidArgument unless the axes of `values`, the shape of the values of a loss or metric,
// begin with those of the mask of the prediction and of the sample weights. The shapes include the
// batch axis. A mask or weights that do not exist have the shape []. `key` names the loss or its
// model in the message.
Status CheckPlaces(std::string_view key, const Shape& values, const Shape& mask,
                   const Shape& sample_weights);

}  // namespace tfjob::model
