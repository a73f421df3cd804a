#include "runtime/model/metrics/metric.h"

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"
#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;
using losses::LabelsLike;
using losses::MeanOfLast;

// Listed in the order of Metric::Kind, up to kLoss.
constexpr std::string_view kOwnNames[] = {"accuracy",
                                          "binary_accuracy",
                                          "categorical_accuracy",
                                          "sparse_categorical_accuracy",
                                          "top_k_categorical_accuracy",
                                          "sparse_top_k_categorical_accuracy",
                                          "perplexity",
                                          "root_mean_squared_error",
                                          "r2_score",
                                          "precision",
                                          "recall",
                                          "auc",
                                          "true_positives",
                                          "true_negatives",
                                          "false_positives",
                                          "false_negatives",
                                          "precision_at_recall",
                                          "recall_at_precision",
                                          "sensitivity_at_specificity",
                                          "specificity_at_sensitivity",
                                          "f1_score",
                                          "fbeta_score",
                                          "io_u",
                                          "binary_io_u",
                                          "mean_io_u",
                                          "one_hot_io_u",
                                          "one_hot_mean_io_u",
                                          "pearson_correlation",
                                          "concordance_correlation"};
static_assert(std::size(kOwnNames) == static_cast<size_t>(Metric::kLoss));

constexpr std::string_view kCustomName = "custom";

bool IsCount(const Metric& metric) {
  return metric.kind >= Metric::kPrecision && metric.kind <= Metric::kOneHotMeanIoU;
}

bool UsesMask(const Metric& metric) {
  return !IsCount(metric) && metric.kind != Metric::kR2Score &&
         metric.kind != Metric::kRootMeanSquaredError;
}

// Replaces kAccuracy with the specific metric that it means. Returns any other metric unchanged.
Metric Resolve(const Metric& metric, int64_t last_axis, bool classes) {
  if (metric.kind != Metric::kAccuracy) return metric;
  if (classes) return Metric::kSparseCategoricalAccuracy;
  return last_axis == 1 ? Metric::kBinaryAccuracy : Metric::kCategoricalAccuracy;
}

LabelForm FormOfMetric(const Metric& metric, bool classes) {
  switch (metric.kind) {
    case Metric::kSparseCategoricalAccuracy:
    case Metric::kSparseTopKCategoricalAccuracy:
      return LabelForm::kClasses;
    case Metric::kCategoricalAccuracy:
    case Metric::kTopKCategoricalAccuracy:
    case Metric::kR2Score:
      return LabelForm::kRows;
    case Metric::kPerplexity:
      return classes ? LabelForm::kClasses : LabelForm::kRows;
    case Metric::kLoss:
      return FormOf(metric.loss);
    case Metric::kOneHotIoU:
    case Metric::kOneHotMeanIoU:
    case Metric::kPearsonCorrelation:
    case Metric::kConcordanceCorrelation:
      return LabelForm::kRows;
    case Metric::kIoU:
    case Metric::kMeanIoU:
      if (metric.sparse_y_pred) return LabelForm::kValues;
      return metric.sparse_y_true ? LabelForm::kClasses : LabelForm::kRows;
    default:
      return LabelForm::kValues;
  }
}

Output AsFloat(Builder& b, Output condition) {
  return Cast(b, condition, DType::kFloat32);
}

// Returns the classes [b, …] of labels that are classes or one-hot rows.
Output ClassesOf(Builder& b, Output labels) {
  return b.dtype(labels) == DType::kInt64 ? labels : ArgMax(b, labels, -1);
}

Output CategoricalAccuracy(Builder& b, Output p, Output y) {
  return AsFloat(b, Equal(b, ArgMax(b, p, -1), ClassesOf(b, y)));
}

Output BinaryAccuracy(Builder& b, double threshold, Output p, Output y) {
  const Output positive = AsFloat(b, Greater(b, p, losses::Number(b, p, threshold)));
  return MeanOfLast(b, AsFloat(b, Equal(b, positive, LabelsLike(b, y, p))));
}

Output TopK(Builder& b, int64_t k, Output p, Output y) {
  const Shape& shape = b.shape(p);
  const int64_t count = shape.dim(-1);
  Tensor numbers(DType::kInt64, Shape({count}));
  for (int64_t i = 0; i < count; ++i) numbers.data<int64_t>()[static_cast<size_t>(i)] = i;
  std::vector<int64_t> column = shape.dims();
  column.back() = 1;
  const Output classes = Reshape(b, ClassesOf(b, y), Shape(std::move(column)));
  const Output chosen = Equal(b, classes, Const(b, std::move(numbers)));
  const Output score = Sum(b, Select(b, chosen, p, losses::Number(b, p, 0)), {-1}, true);
  const Output better = Sum(b, AsFloat(b, Greater(b, p, score)), {-1});
  const Output right =
      AsFloat(b, Less(b, better, losses::Number(b, better, static_cast<double>(k))));
  // As in TensorFlow's in_top_k, an example with a score that is not finite counts as wrong.
  const Output infinity = losses::Number(b, p, std::numeric_limits<double>::infinity());
  const Output finite = Min(b, AsFloat(b, Less(b, Abs(b, p), infinity)), {-1});
  // An example whose label is not a class also counts as wrong; the loss ignores it.
  const Output has_class = Max(b, AsFloat(b, chosen), {-1});
  return Mul(b, Mul(b, right, finite), has_class);
}

// Returns one value per place, for a metric that is a mean or a function of a mean.
Output Values(Builder& b, const Metric& metric, const Loss& loss, Output p, Output y) {
  switch (metric.kind) {
    case Metric::kBinaryAccuracy:
      return BinaryAccuracy(b, metric.threshold.value_or(0.5), p, y);
    case Metric::kCategoricalAccuracy:
    case Metric::kSparseCategoricalAccuracy:
      return CategoricalAccuracy(b, p, y);
    case Metric::kTopKCategoricalAccuracy:
    case Metric::kSparseTopKCategoricalAccuracy:
      return TopK(b, metric.k, p, y);
    case Metric::kRootMeanSquaredError:
      return LossValues(b, {.kind = LossKind::kMeanSquaredError}, p, y);
    case Metric::kPearsonCorrelation:
      return counts::PearsonCorrelation(b, p, LabelsLike(b, y, p));
    case Metric::kConcordanceCorrelation:
      return counts::ConcordanceCorrelation(b, p, LabelsLike(b, y, p));
    default:
      break;
  }
  Loss own{.kind = metric.loss,
           .from_logits = metric.from_logits.value_or(loss.from_logits),
           .label_smoothing = metric.label_smoothing};
  if (metric.kind == Metric::kPerplexity) {
    own.kind = b.dtype(y) == DType::kInt64 ? LossKind::kSparseCategoricalCrossentropy
                                           : LossKind::kCategoricalCrossentropy;
  }
  if (InheritsIgnoreClass(metric, loss)) own.ignore_class = loss.ignore_class;
  const Output values = LossValues(b, own, p, y);
  const bool similarity =
      metric.kind == Metric::kLoss && metric.loss == LossKind::kCosineSimilarity;
  return similarity ? Neg(b, values) : values;
}

// Returns the sum of the values, divided by the number of places per example.
Output SumOfValues(Builder& b, Output values) {
  const Shape& shape = b.shape(values);
  const int64_t examples = shape.dim(0);
  const Output sum = Sum(b, values, {});
  if (shape.rank() == 1 || examples == 0) return sum;
  return losses::Times(b, sum,
                       static_cast<double>(examples) / static_cast<double>(shape.num_elements()));
}

// Returns weights with the rank of the values: the product of the factors that are valid. If none
// is valid, returns an invalid Output.
Output WeightsOf(Builder& b, Output values, std::initializer_list<Output> factors) {
  Output weights;
  for (const Output factor : factors) {
    if (!factor.valid() || !b.ok()) continue;
    const Output own = AlongSteps(b, Cast(b, factor, b.dtype(values)), values);
    weights = weights.valid() && b.ok() ? Mul(b, weights, own) : own;
  }
  return weights;
}

// Returns the sum of the values or, if one of the factors is valid, the sum of the weighted values
// and the sum of the weights.
Output WeightedSums(Builder& b, Output values, std::initializer_list<Output> factors) {
  const Output weights = WeightsOf(b, values, factors);
  if (!weights.valid() || !b.ok()) return SumOfValues(b, values);
  const Output sums[] = {SumOfValues(b, Mul(b, values, weights)), SumOfValues(b, weights)};
  return Concat(b, {Reshape(b, sums[0], {1}), Reshape(b, sums[1], {1})}, 0);
}

}  // namespace

StatusOr<Metric> ParseMetric(std::string_view name) {
  for (size_t i = 0; i < std::size(kOwnNames); ++i) {
    if (kOwnNames[i] == name) return static_cast<Metric::Kind>(i);
  }
  if (const StatusOr<LossKind> loss = ParseLoss(name); loss.ok() && IsAlsoMetric(*loss))
    return Metric(*loss);
  if (name == kCustomName) return Metric(Metric::kCustom);
  const std::vector<std::string_view> names = MetricNames();
  return InvalidArgument("metric ", name, " is not supported",
                         DidYouMean(name, std::vector<std::string>(names.begin(), names.end())));
}

std::string_view Name(const Metric& metric) {
  if (metric.kind == Metric::kCustom) return kCustomName;
  return metric.kind == Metric::kLoss ? Name(metric.loss)
                                      : kOwnNames[static_cast<size_t>(metric.kind)];
}

std::vector<std::string_view> MetricNames() {
  std::vector<std::string_view> names(std::begin(kOwnNames), std::end(kOwnNames));
  for (int loss = 0; IsAlsoMetric(static_cast<LossKind>(loss)); ++loss)
    names.push_back(Name(static_cast<LossKind>(loss)));
  names.push_back(kCustomName);
  return names;
}

std::vector<Metric> PerThreshold(const Metric& metric) {
  if (metric.kind == Metric::kAuc || metric.thresholds.size() < 2) return {metric};
  std::vector<Metric> metrics;
  for (const double threshold : metric.thresholds) {
    Metric& one = metrics.emplace_back(metric);
    one.thresholds = {threshold};
    const std::string_view name =
        metric.given_name.empty() ? Name(metric) : std::string_view(metric.given_name);
    one.given_name = StrCat(name, "_at_", threshold);
  }
  return metrics;
}

Status CheckMetric(const Metric& metric, const Shape& output, DType label_dtype,
                   const Shape& label_shape) {
  const std::string what = StrCat("metric ", Name(metric));
  const bool classes = label_dtype == DType::kInt64;
  const int64_t last = output.rank() == 0 ? 1 : output.dim(-1);
  if ((metric.kind == Metric::kR2Score || counts::IsFScore(metric)) && output.rank() != 1) {
    return InvalidArgument(what, " expects an output of one axis, got shape ", output.ToString());
  }
  if (metric.class_id >= last) {
    return InvalidArgument(what, ": class_id is ", metric.class_id, ", but the output has ", last,
                           " classes, from 0");
  }
  if (metric.top_k > last) {
    return InvalidArgument(what, ": top_k is ", metric.top_k, ", but the output has only ", last,
                           " classes");
  }
  return CheckLabels(what, FormOfMetric(Resolve(metric, last, classes), classes), output,
                     label_dtype, label_shape);
}

bool InheritsIgnoreClass(const Metric& metric, const Loss& loss) {
  if (!loss.ignore_class || loss.kind != LossKind::kSparseCategoricalCrossentropy) return false;
  return metric.kind == Metric::kPerplexity ||
         (metric.kind == Metric::kLoss && metric.loss == loss.kind);
}

int64_t SumsOf(const Metric& metric, int64_t elements, bool masked, bool weighted) {
  if (metric.kind == Metric::kR2Score) return 3 * elements + (weighted ? 1 : 0);
  if (IsCount(metric)) return counts::SumsOf(metric, elements);
  return weighted || (masked && UsesMask(metric)) ? 2 : 1;
}

Output MetricSums(Builder& b, const Metric& metric, const Loss& loss, Output prediction,
                  Output labels, Output mask, Output sample_weights) {
  if (!b.ok()) return {};
  if (metric.kind == Metric::kR2Score || IsCount(metric)) {
    if (!counts::ComparesClassNumbers(metric)) labels = LabelsLike(b, labels, prediction);
    return counts::Sums(b, metric, prediction, labels, sample_weights);
  }
  const Shape& shape = b.shape(prediction);
  const int64_t last = shape.rank() == 1 ? 1 : shape.dim(-1);
  const Metric resolved = Resolve(metric, last, b.dtype(labels) == DType::kInt64);
  const Output values = Values(b, resolved, loss, prediction, labels);
  if (!b.ok()) return {};
  const Output counted =
      InheritsIgnoreClass(metric, loss) ? CountedPlaces(b, loss, labels) : Output();
  return WeightedSums(b, values, {UsesMask(resolved) ? mask : Output(), counted, sample_weights});
}

Output MeanSums(Builder& b, Output values, Output mask, Output sample_weights) {
  return b.ok() ? WeightedSums(b, values, {mask, sample_weights}) : Output();
}

double MetricValue(const Metric& metric, std::span<const double> sums, int64_t examples) {
  if (examples == 0 || sums.empty()) return 0;
  if (metric.kind == Metric::kR2Score || IsCount(metric))
    return counts::Value(metric, sums, static_cast<double>(examples));
  const double count = sums.size() > 1 ? sums[1] : static_cast<double>(examples);
  const double mean = count == 0 ? 0 : sums[0] / count;
  if (metric.kind == Metric::kPerplexity) return std::exp(mean);
  return metric.kind == Metric::kRootMeanSquaredError ? std::sqrt(mean) : mean;
}

}  // namespace tfjob::model
