// Builds the graph of a model, for one mode and one batch size: forward pass, loss, metrics,
// gradients and updates. The graphs of a model share their variables by name.
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

// Names of feeds. The feeds of the features have the names of InputNames (model.h).
inline constexpr char kLabels[] = "labels";                 // kTrain, kEval; see Objective::name
inline constexpr char kSampleWeights[] = "sample_weights";  // kTrain, kEval; see Objective::name
inline constexpr char kStep[] = "step";  // kTrain: int64 scalar, number of updates before this one
inline constexpr char kSeed[] = "seed";  // kTrain: int64 scalar, for dropout

// Names of fetches.
// kTrain, if a layer computes in float16: the factor of the loss while gradients are computed, a
// float32 scalar (runtime/state/loss_scale.h).
inline constexpr char kLossScale[] = "loss_scale";
inline constexpr char kPrediction[] = "prediction";  // kEval, kPredict; see Objective::name
inline constexpr char kLoss[] = "loss";  // kTrain, kEval: float32 scalar, the minimised value
// kTrain, kEval: float32 scalar, the sum of the examples' losses, plus the batch size times the
// penalties of regularizers. The loss of an example is the mean over its places (loss.h), or their
// sum if Loss::sum is set. To get the exact mean over several batches, divide the total of their
// sums by the total number of examples.
inline constexpr char kLossSum[] = "loss_sum";

enum class Mode { kTrain, kEval, kPredict };

// Describes how one output of the model is trained and measured. Training minimises the weighted
// sum of the losses of all objectives.
struct Objective {
  Loss loss;
  std::vector<Metric> metrics;
  std::vector<Metric> weighted_metrics;  // use the sample weights, if there are any
  double weight = 1;
  // The labels of one example as the data provides them: int64 (classes), or float32 (one-hot rows
  // or values). See loss.h for their shapes.
  TensorType labels = {DType::kInt64, {}};
  // If set, the data provides sample weights, float32: one per example (shape []) or one per place
  // of the loss (loss.h). Each loss is multiplied by its weight. As in Keras, the mean still
  // divides by the number of places, not by the sum of the weights.
  std::optional<Shape> sample_weights = {};
  // True if the prediction has a mask. Metrics that are means then use the mask. See FindMasks.
  bool masked = false;
};

struct BuildOptions {
  Mode mode = Mode::kTrain;
  int64_t batch_size = 1;
  std::vector<TensorType> features;  // for each input, the type of one example in the data
  // kTrain, kEval: one per output of the model.
  std::vector<Objective> objectives = {};
  int64_t replica = 0;  // kTrain: index among the tasks that share a seed, so that dropout differs
  // kTrain: if set, the graph itself updates the variables, with ApplyOptimizer, ApplyOptimizerRows
  // and Assign ops, as for training on one device. If unset, the graph has one fetch per
  // contribution instead.
  std::optional<optimizer::Optimizer> optimizer;
  // kTrain with `optimizer`: if the loss, a gradient before clipping, or the new value of a moving
  // statistic is not finite, the run fails with Aborted and changes no variable. Models whose loss
  // is scaled do so in any case.
  bool check_numbers = false;
  // kTrain: how gradients are clipped before they are applied or fetched. With
  // gradient_accumulation_steps, `optimizer` applies the clipped mean of several gradients.
  optimizer::Clipping clipping = {};
  // kTrain: whether gradients of tables may be kGradientRows. If not, all gradients are dense.
  bool gradient_rows = true;
  // The variables that are not stored where the graph runs: instead, the rows that the graph reads
  // are fed to it. They must be among SeparableTables, and `optimizer` must not be set.
  std::vector<std::string> tables = {};
};

// Return the names of the feeds of an output's labels and sample weights, and of the fetch of its
// prediction: "labels" if the model has one output, otherwise "labels/NAME" with the output's name
// (OutputNames in model.h).
std::string LabelsName(const Model& model, size_t output);
std::string SampleWeightsName(const Model& model, size_t output);
std::string PredictionName(const Model& model, size_t output);

// How a contribution changes a variable.
enum class Change {
  kGradient,      // the value is a gradient, for the optimizer
  kGradientRows,  // the value is some rows of a gradient, which is zero elsewhere
  kAssign,        // the value replaces that of the variable, which is a moving statistic
};
// A training graph's contribution to one variable.
struct Contribution {
  std::string variable;  // "dense/kernel"
  Change change = Change::kGradient;
  std::string fetch;  // "gradients/dense/kernel", "assignments/batch_normalization/moving_mean"
  // For kGradientRows, the name of a second fetch, such as "indices/embedding/embeddings": the
  // indices of the rows whose gradients are in `fetch`; see DeduplicateIndexedSlices (graph/ops.h).
  // It is ready when `fetch` is ready.
  std::string indices;
};
// Returns the name under which a contribution is fetched or fed.
std::string ContributionName(Change change, const std::string& variable);

struct MetricFetch {
  // "accuracy", or the name that the user has given; "OUTPUT_accuracy" if the model has several
  // outputs. See MetricsOf.
  std::string name;
  std::string fetch;  // "accuracy_sum": the metric's sums over the batch (metric.h)
  Metric metric = Metric::kAccuracy;
  int64_t sums = 1;  // the number of sums
};
// Sets Objective::masked for the outputs that have a mask, if any output has metrics. Requires
// inputs that the model accepts.
void FindMasks(const Model& model, BuildOptions& options);
// Returns the metrics of all objectives, in order, followed by their weighted metrics. If there are
// several outputs, their losses before weighting ("OUTPUT_loss") come first. Names that would not
// be unique are changed as in Keras (keras/src/trainers/compile_utils.py, CompileMetrics.result): a
// weighted metric becomes "weighted_NAME" or "OUTPUT_weighted_NAME", and any other metric becomes
// "NAME_1".
std::vector<MetricFetch> MetricsOf(const Model& model, const BuildOptions& options);

struct BuiltGraph {
  graph::Graph graph;
  std::vector<VariableSpec> variables;  // in the order of Variables()
  // kTrain without optimizer: the contributions of a step to the variables, in the order in which
  // they are computed (assignments, then gradients, last layer first). A frozen variable has no
  // contribution. With optimizer: only the contributions of kind kGradientRows, so that they can be
  // checked.
  std::vector<Contribution> contributions;
  std::vector<MetricFetch> metrics;  // kTrain, kEval
  int64_t examples = 0;              // the batch size: the number of examples in each sum
  // `tables` are those of BuildOptions::tables whose rows are fed to `graph`. `table_ids` computes
  // the indices of these rows.
  std::vector<graph::RowTable> tables;
  graph::Graph table_ids;
};

// Builds the graph. Returns InvalidArgument if layers, loss, metrics and labels are incompatible.
// The message names the layer and the shapes.
StatusOr<BuiltGraph> Build(const Model& model, const BuildOptions& options);

// Returns the tables that BuildOptions::tables may name, such as the variable of an Embedding
// layer: this graph only gathers rows of them, and its contributions to them, if any, are gradients
// of rows.
std::vector<std::string> SeparableTables(const BuiltGraph& built);

// Builds a graph that only applies contributions, which are fed under the names of their fetches;
// the only other feed is kStep. The graph clips the gradients (with gradient_accumulation_steps,
// their mean) by `clipping` before it applies them. Set `clipping` only if the training graph has
// not already clipped the contributions.
StatusOr<graph::Graph> BuildUpdates(const BuiltGraph& training,
                                    const optimizer::Optimizer& optimizer,
                                    const optimizer::Clipping& clipping = {});

}  // namespace tfjob::model
