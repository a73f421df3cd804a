// Defines losses and metrics, with their Keras names. Each computes one number per place: a place
// is an example, or, if the model's output has more than one axis, a position along all of them but
// the last one, such as a step of a sequence. The loss of a batch is the mean or the sum of these
// numbers.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

// The formulas below write p for the model's output and y for the labels:
//   kSparseCategoricalCrossentropy   y: int64, like p without its last axis: [b], [b, steps], …
//     if p are logits                -log softmax(p)[y]
//     if p are probabilities         -log p[y], with p clipped to [1e-7, 1 - 1e-7], then normalised
//   kCategoricalCrossentropy         y: float32, like p
//     if p are logits                -Σ y log softmax(p)
//     if p are probabilities         -Σ y log p, with p normalised, then clipped as above
//   kClippedCrossentropy             y: float32, like p
//                                    -Σ y log(clip(p, 1e-10, 1))
//   kMeanSquaredError                y: like p
//                                    mean over the last axis of (p - y)²
// If the probabilities come directly from a softmax, the first two losses use the logits of that
// softmax, as Keras does on TensorFlow.
enum class LossKind {
  kSparseCategoricalCrossentropy,
  kCategoricalCrossentropy,
  kClippedCrossentropy,
  kMeanSquaredError,
};
struct Loss {
  LossKind kind = LossKind::kSparseCategoricalCrossentropy;
  bool from_logits = false;
  bool sum = false;  // over the places of the batch, instead of the mean
};
// Parses a name such as "sparse_categorical_crossentropy". For any other name, returns
// InvalidArgument with a message that suggests or lists names.
StatusOr<LossKind> ParseLoss(std::string_view name);
std::string_view Name(LossKind kind);

// kAccuracy is 1 if the model's largest output is that of the label's class, and otherwise 0.
// kMeanSquaredError is the loss of the same name.
enum class Metric { kAccuracy, kMeanSquaredError };
StatusOr<Metric> ParseMetric(std::string_view name);
std::string_view Name(Metric metric);

// Check that the loss or metric fits the output and the labels. Both shapes are those of one
// example. If it does not fit, return InvalidArgument with a message that says what was expected.
Status CheckLoss(const Loss& loss, const Shape& output, DType label_dtype,
                 const Shape& label_shape);
Status CheckMetric(Metric metric, const Shape& output, DType label_dtype, const Shape& label_shape);

// Returns the shape of the places of one example: that of the output, without its last axis.
Shape PlacesOf(const Shape& output);

// Return one value per place, as float32 [b, …places]. CheckLoss or CheckMetric must have accepted
// the shapes of the prediction and the labels.
graph::Output LossValues(graph::Builder& b, const Loss& loss, graph::Output prediction,
                         graph::Output labels);
graph::Output MetricValues(graph::Builder& b, Metric metric, graph::Output prediction,
                           graph::Output labels);

}  // namespace tfjob::model
