// Defines losses and metrics, with their Keras names. Each computes a number per example; the loss
// of a batch is their mean or their sum.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

// p: the model's output, y: the labels.
//   kSparseCategoricalCrossentropy   y int64 [b]:  -log softmax(logits)[y]; of probabilities
//                                    -log p[y], with p clipped to [1e-7, 1 - 1e-7] and normalised
//   kCategoricalCrossentropy         y [b, c]:     -Σ y log softmax(logits); of probabilities
//                                    -Σ y log p, with p normalised and clipped to [1e-7, 1 - 1e-7]
//   kClippedCrossentropy             y [b, c]:     -Σ y log(clip(p, 1e-10, 1))
//   kMeanSquaredError                y as p:       mean over the elements of (p - y)²
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
  bool sum = false;  // over the batch, instead of the mean
};
// Parses a name such as "sparse_categorical_crossentropy". For any other name, returns
// InvalidArgument with a message that suggests or lists names.
StatusOr<LossKind> ParseLoss(std::string_view name);
std::string_view Name(LossKind kind);

// kAccuracy is 1 if the largest output is that of the label's class, else 0. kMeanSquaredError is
// the loss of the same name.
enum class Metric { kAccuracy, kMeanSquaredError };
StatusOr<Metric> ParseMetric(std::string_view name);
std::string_view Name(Metric metric);

// Check that the loss or metric fits outputs of shape `output` and labels of this type and shape
// (both shapes are those of one example). If it does not, return InvalidArgument with a message
// that says what was expected.
Status CheckLoss(const Loss& loss, const Shape& output, DType label_dtype,
                 const Shape& label_shape);
Status CheckMetric(Metric metric, const Shape& output, DType label_dtype, const Shape& label_shape);

// Return a value per example, float32 [b]. CheckLoss or CheckMetric must have accepted the shapes
// of the prediction and the labels.
graph::Output LossPerExample(graph::Builder& b, const Loss& loss, graph::Output prediction,
                             graph::Output labels);
graph::Output MetricPerExample(graph::Builder& b, Metric metric, graph::Output prediction,
                               graph::Output labels);

}  // namespace tfjob::model
