// Defines metrics, with their Keras names. A metric consists of sums, which a graph computes for
// each batch and which add up over batches, and of a function from their totals to the metric's
// value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/losses/loss.h"

namespace tfjob::model {

// A metric, or the mean of a loss. Most metrics are means over all places (loss.h): the accuracies,
// the losses, and kPerplexity and kRootMeanSquaredError, which are functions of such a mean.
// kAccuracy is kBinaryAccuracy if the output has one element. Otherwise, the form of the labels
// decides whether it is kSparseCategoricalAccuracy or kCategoricalAccuracy. The top-k metrics are 1
// at places where fewer than `k` scores exceed the score of the label's class, and 0 at all others.
// As a metric, the cosine similarity is the negative of the loss of this name.
//
// The metrics from kPrecision to kFalseNegatives take all elements of the output as probabilities.
// An element counts as positive if it is above `threshold`. kAuc is the area under a curve,
// computed from the curve's values at `num_thresholds` evenly distributed thresholds.
struct Metric {
  enum class Kind {
    kAccuracy,
    kBinaryAccuracy,
    kCategoricalAccuracy,
    kSparseCategoricalAccuracy,
    kTopKCategoricalAccuracy,
    kSparseTopKCategoricalAccuracy,
    kPerplexity,  // exp of the mean cross-entropy, of the kind that matches the labels
    kRootMeanSquaredError,
    kR2Score,  // 1 - residual / variance, the mean over the elements of the output
    kPrecision,
    kRecall,
    kAuc,
    kTruePositives,
    kTrueNegatives,
    kFalsePositives,
    kFalseNegatives,
    kLoss,  // the mean of `loss`
  };
  using enum Kind;

  Metric(Kind kind) : kind(kind) {}                   // NOLINT: most metrics are only a kind
  Metric(LossKind loss) : kind(kLoss), loss(loss) {}  // NOLINT

  enum class Curve { kRoc, kPr };
  // How the area between two thresholds is computed: with Keras' interpolation, or from the lower
  // or the higher of the two values.
  enum class Summation { kInterpolation, kMinoring, kMajoring };

  Kind kind;
  LossKind loss = {};

  // Arguments, with Keras' names and defaults. Each kind has only those that ReadMetric accepts.
  double threshold = 0.5;
  int64_t k = 5;
  int64_t class_id =
      -1;  // -1: all elements of the output; otherwise only this index on the last axis
  int64_t num_thresholds = 200;
  Curve curve = Curve::kRoc;
  Summation summation_method = Summation::kInterpolation;
  std::optional<bool> from_logits = {};  // if unset, that of the loss (kAuc: false)
  double label_smoothing = 0;

  std::string given_name = {};  // the name that the user has given; "": the metric's own name

  bool operator==(const Metric&) const = default;
};

// Parses a name such as "accuracy". For any other name, returns InvalidArgument with a message that
// suggests or lists names.
StatusOr<Metric> ParseMetric(std::string_view name);
// Reads a name, or a map with a name and arguments: {name: top_k_categorical_accuracy, k: 3}. The
// argument `as` sets Metric::given_name. Returns InvalidArgument, with a message that names the
// path, the metric and the argument, for anything else.
StatusOr<Metric> ReadMetric(const JsonField& field);
// Returns the metric's own name: "auc".
std::string_view Name(const Metric& metric);
// Returns the names of all metrics.
std::vector<std::string_view> MetricNames();

// Returns InvalidArgument if the metric is incompatible with the output or the labels, like
// CheckLoss.
Status CheckMetric(const Metric& metric, const Shape& output, DType label_dtype,
                   const Shape& label_shape);

// Returns the number of sums. `elements` is the number of elements of one example's output,
// `masked` whether the output has a mask, and `weighted` whether MetricSums gets sample weights.
int64_t SumsOf(const Metric& metric, int64_t elements, bool masked = false, bool weighted = false);

// Returns the sums of the batch: a float32 scalar if there is only one, and otherwise a vector.
// CheckMetric must have accepted the shapes. Metrics that are cross-entropies take from_logits from
// the output's loss, unless they state it.
//
// If the output has a mask, a metric that is a mean covers only the unmasked places, as in Keras.
// It then has two sums: that of the values and that of the mask. As in Keras,
// kRootMeanSquaredError, kR2Score, and the metrics from kPrecision to kFalseNegatives ignore the
// mask.
//
// `sample_weights`, if valid, are float32: one per example, or one per place. As in Keras'
// weighted_metrics, a mean is then weighted, and its second sum is that of the weights, multiplied
// by the mask if there is one. In other metrics, every element that is counted or added up has the
// weight of its place.
graph::Output MetricSums(graph::Builder& b, const Metric& metric, const Loss& loss,
                         graph::Output prediction, graph::Output labels, graph::Output mask = {},
                         graph::Output sample_weights = {});

// Returns the metric's value. `sums` are the totals of SumsOf(metric) sums over `examples`
// examples. Returns 0 if there are no examples, or where Keras replaces the result of a division by
// zero with 0.
double MetricValue(const Metric& metric, std::span<const double> sums, int64_t examples);

}  // namespace tfjob::model
