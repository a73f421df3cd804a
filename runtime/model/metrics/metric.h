// Defines metrics, with their Keras names. A metric consists of sums, and of a function that
// computes the metric's value from their totals. A graph computes the sums of each batch; the
// totals are the sums over all batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/losses/loss.h"

namespace tfjob::model {

// Describes a metric, which may also be the mean of a loss, or of values that a model computes. The
// accuracies and the losses are means over all places (loss.h); kPerplexity and
// kRootMeanSquaredError are functions of such means.
// kAccuracy means kBinaryAccuracy if the output has one element; otherwise, it means
// kSparseCategoricalAccuracy or kCategoricalAccuracy, depending on the form of the labels. The
// top-k metrics are 1 at places where fewer than `k` scores exceed the score of the label's class,
// and 0 at all other places. As a metric, the cosine similarity is the negative of the loss with
// this name.
//
// The metrics from kPrecision to kSpecificityAtSensitivity treat all elements of the output as
// probabilities. An element is positive if it is above the threshold. A metric other than kAuc that
// has several thresholds has one value for each of them: PerThreshold. If `top_k` is set, only the
// elements with the k highest scores of their place can be positive. kAuc is the area under a
// curve, computed from points of the curve at `num_thresholds` evenly distributed thresholds or, if
// there are `thresholds`, at these and at the ends. The four metrics after it choose one of the
// points of such a curve: of those at which the second quantity of the metric's name is at least
// `target`, the point with the largest value of the first quantity, which is the metric's value.
// The value is 0 if there is no such point.
//
// kF1Score and kFBetaScore compare every score of an output of one axis with `threshold` or, if it
// is not set, select the highest score of each example. They combine the scores of the classes as
// `average` specifies.
//
// The metrics from kIoU to kOneHotMeanIoU are means, over `target_class_ids` or over all classes,
// of the intersection over union: the number of places that both the labels and the predictions
// assign to a class, divided by the number of places that either of them does. Classes without any
// places do not count. Neither do places whose label or prediction is not one of `num_classes`
// classes, or whose label is `ignore_class`.
//
// kPearsonCorrelation and kConcordanceCorrelation are means over all places of correlations along
// the last axis.
struct Metric {
  enum class Kind {
    kAccuracy,
    kBinaryAccuracy,
    kCategoricalAccuracy,
    kSparseCategoricalAccuracy,
    kTopKCategoricalAccuracy,
    kSparseTopKCategoricalAccuracy,
    kPerplexity,  // exp of the mean cross-entropy; the labels determine the kind
    kRootMeanSquaredError,
    kR2Score,  // mean of 1 - residual / variance over the elements of the output
    kPrecision,
    kRecall,
    kAuc,
    kTruePositives,
    kTrueNegatives,
    kFalsePositives,
    kFalseNegatives,
    kPrecisionAtRecall,
    kRecallAtPrecision,
    kSensitivityAtSpecificity,
    kSpecificityAtSensitivity,
    kF1Score,
    kFBetaScore,
    kIoU,  // labels and predictions are classes, if their own argument sparse_y_… is true
    kBinaryIoU,
    kMeanIoU,  // like kIoU, of all classes
    kOneHotIoU,
    kOneHotMeanIoU,
    kPearsonCorrelation,
    kConcordanceCorrelation,
    kLoss,    // the mean of `loss`
    kCustom,  // the mean of the values that `model` computes (model/custom_loss.h)
  };
  using enum Kind;

  Metric(Kind kind) : kind(kind) {}                   // NOLINT: most metrics are only a kind
  Metric(LossKind loss) : kind(kLoss), loss(loss) {}  // NOLINT

  enum class Curve { kRoc, kPr };
  // Specifies how the area between two thresholds is computed: using Keras' interpolation, or from
  // the lower or the higher of the values at the two thresholds.
  enum class Summation { kInterpolation, kMinoring, kMajoring };
  // Specifies how the scores of several classes become one: computed from the counts of all classes
  // together, or as the mean of the scores, in which each class has the same weight or the weight
  // of its labels. Keras' default, a score for each class, is not supported.
  enum class Average { kUnset, kMicro, kMacro, kWeighted };

  Kind kind;
  LossKind loss = {};

  // Arguments, with Keras' names and defaults. A kind has only the arguments that ReadMetric
  // accepts for it.
  std::optional<double> threshold = {};  // kBinaryAccuracy and kBinaryIoU: 0.5 if unset
  // From kPrecision to kFalseNegatives. If empty, the threshold is 0.5, there is none if top_k is
  // set, and kAuc has `num_thresholds`.
  std::vector<double> thresholds = {};
  int64_t top_k = 0;  // 0: all elements of the output
  int64_t k = 5;
  int64_t class_id =
      -1;  // -1: all elements of the output; otherwise only this index on the last axis
  int64_t num_thresholds = 200;
  Curve curve = Curve::kRoc;
  Summation summation_method = Summation::kInterpolation;
  std::optional<double> target = {};  // of the metrics that choose a point of a curve
  Average average = Average::kUnset;
  double beta = 1;          // kFBetaScore
  int64_t num_classes = 0;  // from kIoU on, except kBinaryIoU
  std::vector<int64_t> target_class_ids = {};
  std::optional<int64_t> ignore_class = {};
  bool sparse_y_true = true, sparse_y_pred = true;  // kIoU and kMeanIoU
  std::optional<bool> from_logits = {};  // if unset, inherited from the loss (kAuc: false)
  double label_smoothing = 0;
  std::shared_ptr<const Model> model = nullptr;  // kCustom

  std::string given_name = {};  // the name that the user has given; "": the metric's own name

  bool operator==(const Metric&) const = default;
};

// Parses a name such as "accuracy". For an unknown name, returns InvalidArgument with a message
// that suggests or lists names.
StatusOr<Metric> ParseMetric(std::string_view name);
// Reads a name, or a map with a name and arguments: {name: top_k_categorical_accuracy, k: 3}. The
// argument `as` sets Metric::given_name. Accepts the argument `model` of kCustom, but does not read
// it: the caller sets Metric::model. For anything else, returns InvalidArgument with a message
// that contains the path, the metric and the argument. The same applies to a metric without an
// argument that it needs, such as `average`.
StatusOr<Metric> ReadMetric(const JsonField& field);
// Returns the name of the metric's kind, such as "auc".
std::string_view Name(const Metric& metric);
// Returns the names of all metrics.
std::vector<std::string_view> MetricNames();

// Returns a metric for each threshold of a metric that has one value per threshold, each with a
// single threshold and a name: the name of the metric, followed by "_at_" and the threshold.
// Returns any other metric unchanged.
std::vector<Metric> PerThreshold(const Metric& metric);

// Like CheckLoss, returns InvalidArgument if the metric is incompatible with the output or the
// labels. Not for kCustom.
Status CheckMetric(const Metric& metric, const Shape& output, DType label_dtype,
                   const Shape& label_shape);

// Returns whether the metric leaves out the places whose label is the ignore_class of the output's
// loss. This is true of perplexity and the sparse categorical cross-entropy, which have no value at
// such a place. As in Keras, all other metrics count these places.
bool InheritsIgnoreClass(const Metric& metric, const Loss& loss);

// Returns the number of sums. `elements` is the number of elements of the output for one example.
// `masked` is whether the output has a mask or InheritsIgnoreClass returns true, and `weighted` is
// whether sample weights are passed to MetricSums.
int64_t SumsOf(const Metric& metric, int64_t elements, bool masked = false, bool weighted = false);

// Returns the sums for the batch of a metric with one value (PerThreshold): a float32 scalar if
// there is only one sum, and otherwise a vector. CheckMetric must have accepted the shapes. A
// cross-entropy metric that does not set from_logits inherits it from the output's loss.
//
// As in Keras, if the output has a mask, a metric that is a mean covers only the unmasked places.
// Such a metric has two sums: the sum of the values and the sum of the mask. The places that
// InheritsIgnoreClass leaves out are masked, too. As in Keras,
// kRootMeanSquaredError, kR2Score, and the metrics from kPrecision to kOneHotMeanIoU ignore the
// mask.
//
// `sample_weights`, if valid, contains one float32 per example or one per place. As in Keras'
// weighted_metrics, a mean is then weighted. Its second sum is the sum of the weights, multiplied
// by the mask if there is one. In all other metrics, every element that is counted or added up has
// the weight of its place. As in Keras, the metrics from kIoU to kOneHotMeanIoU round weights down
// to integers.
//
// Not for kCustom: use MeanSums instead.
graph::Output MetricSums(graph::Builder& b, const Metric& metric, const Loss& loss,
                         graph::Output prediction, graph::Output labels, graph::Output mask = {},
                         graph::Output sample_weights = {});

// Returns the sums of a metric that is the mean of `values`, which has one float32 per example or
// per place. `mask` and `sample_weights` are as in MetricSums.
graph::Output MeanSums(graph::Builder& b, graph::Output values, graph::Output mask,
                       graph::Output sample_weights);

// Returns the value of the metric. `sums` contains the totals of the SumsOf(metric) sums over
// `examples` examples. Returns 0 if there are no examples. Like Keras, also returns 0 in some cases
// of a division by zero.
double MetricValue(const Metric& metric, std::span<const double> sums, int64_t examples);

}  // namespace tfjob::model
