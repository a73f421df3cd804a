#include "runtime/model/loss.h"

#include <iterator>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

// In the order of LossKind and Metric.
constexpr std::string_view kLosses[] = {"sparse_categorical_crossentropy",
                                        "categorical_crossentropy", "clipped_crossentropy",
                                        "mean_squared_error"};
constexpr std::string_view kMetrics[] = {"accuracy", "mean_squared_error"};
// Keras' backend epsilon.
constexpr double kEpsilon = 1e-7;

template <typename Enum, size_t count>
StatusOr<Enum> Parse(std::string_view what, std::string_view name,
                     const std::string_view (&names)[count]) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  const std::vector<std::string> known(std::begin(names), std::end(names));
  return InvalidArgument(what, " ", name, " is not supported", DidYouMean(name, known));
}

// Returns the logits if the prediction is a softmax, and otherwise an invalid Output.
Output LogitsOf(Builder& b, Output prediction) {
  const graph::Node& node = b.graph().node(prediction);
  return node.op == "Softmax" ? node.inputs[0] : Output();
}

// The ops of the cross-entropies take matrices: one row per place.
Output RowsOf(Builder& b, Output x) {
  const Shape& shape = b.shape(x);
  return shape.rank() == 2 ? x : Reshape(b, x, {-1, shape.dim(-1)});
}

// Gives the losses of the rows the shape of the places.
Output AtPlaces(Builder& b, Output losses, const Shape& prediction) {
  return prediction.rank() == 2 ? losses : Reshape(b, losses, PlacesOf(prediction));
}

Output SparseCrossEntropy(Builder& b, bool from_logits, Output prediction, Output labels) {
  Output logits = from_logits ? prediction : LogitsOf(b, prediction);
  if (!logits.valid())
    logits = graph::Log(b, graph::ClipByValue(b, prediction, kEpsilon, 1 - kEpsilon));
  if (b.shape(labels).rank() != 1) labels = Reshape(b, labels, {-1});
  return AtPlaces(b, SparseSoftmaxCrossEntropyWithLogits(b, RowsOf(b, logits), labels).loss,
                  b.shape(prediction));
}

Output RowCrossEntropy(Builder& b, Output probabilities, Output labels) {
  return graph::Neg(b, graph::Sum(b, graph::Mul(b, labels, graph::Log(b, probabilities)), {-1}));
}

Output CategoricalCrossEntropy(Builder& b, bool from_logits, Output prediction, Output labels) {
  const Output logits = from_logits ? prediction : LogitsOf(b, prediction);
  if (logits.valid()) {
    const Output losses =
        SoftmaxCrossEntropyWithLogits(b, RowsOf(b, logits), RowsOf(b, labels)).loss;
    return AtPlaces(b, losses, b.shape(prediction));
  }
  const Output normalized = graph::Div(b, prediction, graph::Sum(b, prediction, {-1}, true));
  return RowCrossEntropy(b, graph::ClipByValue(b, normalized, kEpsilon, 1 - kEpsilon), labels);
}

Output SquaredError(Builder& b, Output prediction, Output labels) {
  const Shape& shape = b.shape(prediction);
  if (b.shape(labels) != shape) labels = graph::Reshape(b, labels, shape);
  const Output squares = graph::Square(b, graph::Sub(b, prediction, labels));
  return shape.rank() == 1 ? squares : graph::Mean(b, squares, {-1});
}

std::string LabelText(DType dtype, const Shape& shape) {
  return StrCat(Name(dtype), " of shape ", shape.ToString());
}

Status CheckRows(std::string_view what, const Shape& output) {
  if (output.rank() >= 1) return OkStatus();
  return InvalidArgument(
      what, " expects one score per class, shape [classes], but the model outputs shape ",
      output.ToString());
}

Status CheckClasses(std::string_view what, const Shape& output, DType dtype, const Shape& labels) {
  RETURN_IF_ERROR(CheckRows(what, output));
  if (dtype == DType::kInt64 && labels == PlacesOf(output)) return OkStatus();
  return InvalidArgument(what, " expects class numbers as labels, int64 of shape ",
                         PlacesOf(output).ToString(), ", got ", LabelText(dtype, labels),
                         "; set data.labels to class");
}

Status CheckOneHot(std::string_view what, const Shape& output, DType dtype, const Shape& labels) {
  RETURN_IF_ERROR(CheckRows(what, output));
  if (dtype == DType::kFloat32 && labels == output) return OkStatus();
  return InvalidArgument(what, " expects labels like its predictions, float32 of shape ",
                         output.ToString(), ", got ", LabelText(dtype, labels),
                         "; set data.labels to one_hot");
}

Status CheckValues(std::string_view what, const Shape& output, DType dtype, const Shape& labels) {
  if (dtype == DType::kFloat32 && labels.num_elements() == output.num_elements()) return OkStatus();
  return InvalidArgument(what, " expects labels like its predictions, float32 of shape ",
                         output.ToString(), ", got ", LabelText(dtype, labels));
}

}  // namespace

Shape PlacesOf(const Shape& output) {
  std::vector<int64_t> dims = output.dims();
  if (!dims.empty()) dims.pop_back();
  return Shape(std::move(dims));
}

StatusOr<LossKind> ParseLoss(std::string_view name) {
  return Parse<LossKind>("loss", name, kLosses);
}
std::string_view Name(LossKind kind) {
  return kLosses[static_cast<size_t>(kind)];
}
StatusOr<Metric> ParseMetric(std::string_view name) {
  return Parse<Metric>("metric", name, kMetrics);
}
std::string_view Name(Metric metric) {
  return kMetrics[static_cast<size_t>(metric)];
}

Status CheckLoss(const Loss& loss, const Shape& output, DType label_dtype,
                 const Shape& label_shape) {
  switch (loss.kind) {
    case LossKind::kSparseCategoricalCrossentropy:
      return CheckClasses(Name(loss.kind), output, label_dtype, label_shape);
    case LossKind::kCategoricalCrossentropy:
    case LossKind::kClippedCrossentropy:
      return CheckOneHot(Name(loss.kind), output, label_dtype, label_shape);
    case LossKind::kMeanSquaredError:
      break;
  }
  return CheckValues(Name(loss.kind), output, label_dtype, label_shape);
}

Status CheckMetric(Metric metric, const Shape& output, DType label_dtype,
                   const Shape& label_shape) {
  const std::string what = StrCat("metric ", Name(metric));
  if (metric == Metric::kMeanSquaredError)
    return CheckValues(what, output, label_dtype, label_shape);
  const bool classes = label_dtype == DType::kInt64;
  return classes ? CheckClasses(what, output, label_dtype, label_shape)
                 : CheckOneHot(what, output, label_dtype, label_shape);
}

Output LossValues(Builder& b, const Loss& loss, Output prediction, Output labels) {
  if (!b.ok()) return {};
  switch (loss.kind) {
    case LossKind::kSparseCategoricalCrossentropy:
      return SparseCrossEntropy(b, loss.from_logits, prediction, labels);
    case LossKind::kCategoricalCrossentropy:
      return CategoricalCrossEntropy(b, loss.from_logits, prediction, labels);
    case LossKind::kClippedCrossentropy:
      return RowCrossEntropy(b, graph::ClipByValue(b, prediction, 1e-10, 1), labels);
    case LossKind::kMeanSquaredError:
      break;
  }
  return SquaredError(b, prediction, labels);
}

Output MetricValues(Builder& b, Metric metric, Output prediction, Output labels) {
  if (!b.ok()) return {};
  if (metric == Metric::kMeanSquaredError) return SquaredError(b, prediction, labels);
  const bool classes = b.dtype(labels) == DType::kInt64;
  const Output wanted = classes ? labels : graph::ArgMax(b, labels, -1);
  return graph::Cast(b, graph::Equal(b, graph::ArgMax(b, prediction, -1), wanted), DType::kFloat32);
}

}  // namespace tfjob::model
