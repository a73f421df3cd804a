// Builds the graph of a model for one mode and one batch size: the forward pass, the loss, metrics,
// gradients and updates. The graphs of a model share variables by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/table_rows.h"
#include "runtime/model/losses/loss.h"
#include "runtime/model/metrics/metric.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::model {

// Names of feeds. The features are fed under the names that InputNames (model.h) returns.
inline constexpr char kLabels[] = "labels";                 // kTrain, kEval; see Objective::name
inline constexpr char kSampleWeights[] = "sample_weights";  // kTrain, kEval; see Objective::name
inline constexpr char kStep[] = "step";  // kTrain: int64 scalar, number of updates before this one
inline constexpr char kSeed[] = "seed";  // kTrain: int64 scalar, for random ops

// kTrain, if a layer computes in float16: the factor by which the loss is multiplied while
// gradients are computed, a float32 scalar (runtime/state/loss_scale.h).
inline constexpr char kLossScale[] = "loss_scale";
// kTrain with BuildOptions::weighted: the factor of the gradients, a float32 scalar.
inline constexpr char kLossWeight[] = "loss_weight";
inline constexpr char kPrediction[] = "prediction";  // kEval, kPredict; see Objective::name
inline constexpr char kLoss[] = "loss";  // kTrain, kEval: float32 scalar, the minimised value
// kTrain, kEval: float32 scalar, the sum of the losses of all examples, plus the batch size times
// the penalties of regularizers. The loss of an example is the mean over its places (loss.h), or
// the sum over its places if Loss::sum is set. The exact mean over several batches is the total of
// this value, divided by the total number of examples.
inline constexpr char kLossSum[] = "loss_sum";

enum class Mode { kTrain, kEval, kPredict };

// Describes the loss and the metrics of one output of the model. Training minimises the weighted
// sum of the losses of all objectives.
struct Objective {
  Loss loss;
  std::vector<Metric> metrics;
  std::vector<Metric> weighted_metrics;  // weighted by the sample weights, if any
  double weight = 1;
  // The type of one example's labels in the data: int64 for classes, or float32 for one-hot rows or
  // values. See loss.h for the shapes.
  TensorType labels = {DType::kInt64, {}};
  // If set, the data provides float32 sample weights: one per example (shape []) or one per place
  // of the loss (loss.h). Each loss is multiplied by its weight. As in Keras, the mean is the sum
  // divided by the number of places, not by the sum of the weights.
  std::optional<Shape> sample_weights = {};
  // Whether the prediction has a mask, which is then used for metrics that are means. See
  // FindMasks.
  bool masked = false;
};

struct BuildOptions {
  Mode mode = Mode::kTrain;
  int64_t batch_size = 1;
  std::vector<TensorType> features;  // one per input: the type of an example in the data
  // kTrain, kEval: one per output of the model.
  std::vector<Objective> objectives = {};
  int64_t replica = 0;  // kTrain: task index; makes dropout differ between tasks with the same seed
  // kTrain: if set, the graph itself updates the variables, with ApplyOptimizer, ApplyOptimizerRows
  // and Assign ops, as in training on a single device. If unset, the graph instead has one fetch
  // per contribution (Contribution).
  std::optional<optimizer::Optimizer> optimizer;
  // kTrain with `optimizer`: if the loss, a gradient before clipping, or the new value of a moving
  // statistic is not finite, the run fails with Aborted and changes no variable. If the loss is
  // scaled, these checks are always made.
  bool check_numbers = false;
  // kTrain with `optimizer`: whether the graph adds kLossSum and the sums of the metrics to float64
  // variables (TotalName). A run that fails adds nothing.
  bool totals = false;
  // kTrain: how gradients are clipped before they are applied or fetched. With
  // gradient_accumulation_steps, the mean of several gradients is clipped instead, before
  // `optimizer` applies it.
  optimizer::Clipping clipping = {};
  // kTrain without `optimizer`: whether the loss is multiplied by the feed kLossWeight before it is
  // differentiated, so that all gradients are multiplied by it, without a pass over them. Has no
  // effect on a graph that exchanges values with other replicas (graph::Exchanges): an exchange
  // weights the gradients of the replicas itself, so they must not have been weighted before.
  bool weighted = false;
  // kTrain: whether gradients of tables may be contributed by rows (kGradientRows). If false, all
  // gradients are dense.
  bool gradient_rows = true;
  // Names of variables that are not stored where the graph runs; the rows that the graph reads are
  // fed to it instead. SeparableTables must contain these variables, and `optimizer` must be unset.
  std::vector<std::string> tables = {};
};

// Return the names of the feeds of an output's labels and sample weights, and of the fetch of its
// prediction. For labels, this is "labels" if the model has one output, and otherwise "labels/NAME"
// with the output's name (OutputNames in model.h).
std::string LabelsName(const Model& model, size_t output);
std::string SampleWeightsName(const Model& model, size_t output);
std::string PredictionName(const Model& model, size_t output);

// Specifies how a contribution changes a variable.
enum class Change {
  kGradient,      // the value is a gradient; the optimizer applies it
  kGradientRows,  // the value contains those rows of a gradient that may be nonzero
  kAssign,        // the value replaces the variable, a moving statistic
};
// Describes what a training graph contributes to one variable.
struct Contribution {
  std::string variable;  // "dense/kernel"
  Change change = Change::kGradient;
  std::string fetch;  // "gradients/dense/kernel", "assignments/batch_normalization/moving_mean"
  // For kGradientRows, the name of a second fetch, such as "indices/embedding/embeddings". It
  // contains the indices of the rows whose gradients are in `fetch`; see DeduplicateIndexedSlices
  // (graph/ops.h). Both fetches become ready at the same time.
  std::string indices;
};
// Returns the name under which a contribution to `variable` is fetched or fed.
std::string ContributionName(Change change, const std::string& variable);

struct MetricFetch {
  // The metric's name, such as "accuracy", or the name that the user chose. If the model has
  // several outputs, the output's name is prepended: "OUTPUT_accuracy". See MetricsOf.
  std::string name;
  std::string fetch;  // "accuracy_sum": the metric's sums over the batch (metric.h)
  Metric metric = Metric::kAccuracy;
  int64_t sums = 1;  // the number of sums
};
// Sets Objective::masked for the outputs that have a mask. Does nothing if no output has metrics.
// The model must accept `options.features`.
void FindMasks(const Model& model, BuildOptions& options);
// Returns the metrics of all objectives, in order, followed by their weighted metrics. If there are
// several outputs, their unweighted losses ("OUTPUT_loss") come first. Duplicate names are changed
// as in Keras (keras/src/trainers/compile_utils.py, CompileMetrics.result): a weighted metric
// becomes "weighted_NAME" or "OUTPUT_weighted_NAME", and any other metric becomes "NAME_1".
std::vector<MetricFetch> MetricsOf(const Model& model, const BuildOptions& options);

// Returns the name of the variable to which a graph adds this fetch (BuildOptions::totals).
std::string TotalName(const std::string& fetch);

struct BuiltGraph {
  graph::Graph graph;
  std::vector<VariableSpec> variables;  // in the order of Variables()
  // kTrain without an optimizer: the contributions of a step to the variables, in the order in
  // which they are computed: first assignments, then gradients, starting with the last layer.
  // Frozen variables receive no contribution. With an optimizer: only the contributions of kind
  // kGradientRows, so that they can be checked.
  std::vector<Contribution> contributions;
  std::vector<MetricFetch> metrics;  // kTrain, kEval
  int64_t examples = 0;              // the batch size
  // kTrain with BuildOptions::totals: the shape of the total of kLossSum, followed by those of the
  // totals of `metrics`.
  std::vector<Shape> totals;
  // `tables` describes the tables of BuildOptions::tables, whose rows are fed to `graph`.
  // `table_ids` is a graph that computes the indices of these rows.
  std::vector<graph::RowTable> tables;
  graph::Graph table_ids;
};

// Builds the graph. Returns InvalidArgument if the layers, the loss, the metrics and the labels do
// not fit together; the message names the layer and the shapes.
StatusOr<BuiltGraph> Build(const Model& model, const BuildOptions& options);

// Returns the variables that BuildOptions::tables may contain, such as the table of an Embedding
// layer. The graph only gathers rows of these variables, and its only contributions to them, if
// any, are gradients by rows.
std::vector<std::string> SeparableTables(const BuiltGraph& built);

// Builds a graph that only applies contributions. The feeds are kStep and the contributions, under
// the names of their fetches. The graph clips the gradients (or, with gradient_accumulation_steps,
// their mean) before it applies them. Set `clipping` only if the training graph has not already
// clipped the contributions.
StatusOr<graph::Graph> BuildUpdates(const BuiltGraph& training,
                                    const optimizer::Optimizer& optimizer,
                                    const optimizer::Clipping& clipping = {});

}  // namespace tfjob::model
