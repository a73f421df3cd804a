#include "runtime/model/build.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/clip_gradients.h"
#include "runtime/model/custom_loss.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/named_metrics.h"
#include "runtime/model/updates.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

struct Feeds {
  std::vector<Output> features;
  std::vector<Output> labels;          // one per objective
  std::vector<Output> sample_weights;  // one per objective; invalid if the objective has none
  Output step, seed;
  Output loss_scale;  // invalid unless a layer computes in float16
};

Output PlaceholderOf(Builder& b, const std::string& name, const TensorType& example,
                     int64_t batch_size) {
  return Placeholder(b, name, example.dtype, Batched(batch_size, example.shape));
}

Feeds AddFeeds(Builder& b, const Model& model, const BuildOptions& options) {
  Feeds feeds;
  const std::vector<std::string> names = InputNames(model);
  for (size_t i = 0; i < names.size(); ++i) {
    feeds.features.push_back(PlaceholderOf(b, names[i], options.features[i], options.batch_size));
  }
  for (size_t i = 0; i < options.objectives.size() && options.mode != Mode::kPredict; ++i) {
    const Objective& objective = options.objectives[i];
    feeds.labels.push_back(
        PlaceholderOf(b, LabelsName(model, i), objective.labels, options.batch_size));
    feeds.sample_weights.emplace_back();
    if (!objective.sample_weights) continue;
    feeds.sample_weights.back() =
        PlaceholderOf(b, SampleWeightsName(model, i), {DType::kFloat32, *objective.sample_weights},
                      options.batch_size);
  }
  if (options.mode == Mode::kTrain) {
    feeds.step = Placeholder(b, kStep, DType::kInt64, {});
    feeds.seed = Placeholder(b, kSeed, DType::kInt64, {});
    if (HasPolicy(model, DTypePolicy::kMixedFloat16))
      feeds.loss_scale = Placeholder(b, kLossScale, DType::kFloat32, {});
  }
  return feeds;
}

// Adds one read per variable, regardless of how often its layer is called.
std::vector<Output> ReadVariables(Builder& b, const std::vector<VariableSpec>& variables) {
  std::vector<Output> reads;
  for (const VariableSpec& variable : variables)
    reads.push_back(ReadVariable(b, variable.name, variable.dtype, variable.shape));
  return reads;
}

Output Weighted(Builder& b, Output value, double weight) {
  return weight == 1 ? value : Mul(b, value, Scalar(b, b.dtype(value), weight));
}

Output Total(Builder& b, Output total, Output part) {
  return total.valid() ? Add(b, total, part) : part;
}

// Multiplies the values, one per place (loss.h), by the sample weights. There is one weight per
// place or one per example.
Output WeightedBySample(Builder& b, Output values, Output weights) {
  if (!weights.valid()) return values;
  std::vector<int64_t> dims = b.shape(weights).dims();
  dims.resize(static_cast<size_t>(b.shape(values).rank()), 1);
  return Mul(b, values, Reshape(b, weights, Shape(std::move(dims))));
}

// Weights the values, one per place, by the prediction's mask, like Keras' apply_mask. Masked
// places have weight 0. If a mean will be taken over all places, the weights of the unmasked places
// are scaled up so that the result is the mean over the unmasked places.
Output WeightedByMask(Builder& b, Output values, Output mask, bool sum) {
  if (!mask.valid()) return values;
  const DType dtype = b.dtype(values);
  Output weights = Cast(b, AlongSteps(b, mask, values), dtype);
  if (!b.ok()) return {};
  if (!sum) {
    const Output one = Scalar(b, dtype, 1);
    const Output total = Scalar(b, dtype, static_cast<double>(b.shape(mask).num_elements()));
    weights = Mul(b, weights, Div(b, total, Maximum(b, Sum(b, weights, {}), one)));
  }
  return Mul(b, values, weights);
}

// Returns one value per example: the sum over the example's places if `sum` is set, and otherwise
// the mean.
Output PerExample(Builder& b, Output values, bool sum) {
  std::vector<int64_t> axes(static_cast<size_t>(b.shape(values).rank()) - 1);
  if (axes.empty()) return values;
  std::iota(axes.begin(), axes.end(), 1);
  return sum ? Sum(b, values, axes) : Mean(b, values, axes);
}

// Returns the sum of the penalties on the layers' outputs and on the trained variables, as in
// Keras.
Output TotalPenalty(Builder& b, const std::vector<VariableSpec>& variables, const LayerCall& call) {
  Output total;
  for (const Output penalty : call.penalties) total = Total(b, total, penalty);
  for (size_t v = 0; v < variables.size(); ++v) {
    const VariableSpec& variable = variables[v];
    if (!variable.trained() || !variable.rules.regularizer.present()) continue;
    total = Total(b, total, Penalty(b, variable.rules.regularizer, call.variables[v]));
  }
  return total;
}

// If the graph itself updates the variables and checks numbers, adds a check: if the value is not
// finite, the run fails without changing any variable. Returns the checked value. `what`
// describes the value in the error message.
Output Checked(Builder& b, const BuildOptions& options, const Feeds& feeds, Output value,
               const std::string& what) {
  const bool checks = options.check_numbers || feeds.loss_scale.valid();
  if (!options.optimizer || !checks || !b.ok()) return value;
  return b.Add("CheckNumerics", {value}, {{"message", what}});
}

// Returns the mask of a loss: the mask of the prediction, without the places that the loss ignores.
// Either of the two may be invalid.
Output MaskOfLoss(Builder& b, const Loss& loss, Output labels, Output values, Output mask) {
  const Output counted = CountedPlaces(b, loss, labels, values);
  if (!counted.valid() || !mask.valid() || !b.ok()) return counted.valid() ? counted : mask;
  return Select(b, AlongSteps(b, mask, counted), counted, Scalar(b, DType::kBool, 0));
}

// Returns the losses of an output, one value per place, weighted by its mask and sample weights.
// Reports an error to the builder if there is a mask or a weight for each place, but no loss.
Output LossesOf(Builder& b, const Loss& loss, Output prediction, Output labels, Output mask,
                Output weights) {
  const bool custom = loss.kind == LossKind::kCustom;
  Output values = (custom ? CustomLossValues : LossValues)(b, loss, prediction, labels);
  if (!b.ok()) return {};
  // As in Keras, a mask does not change the mean of a loss of the whole batch, and the sum is this
  // loss, multiplied by each weight.
  const bool of_batch = IsOfBatch(loss, b.shape(prediction).rank());
  mask = of_batch && !loss.sum ? Output() : MaskOfLoss(b, loss, labels, values, mask);
  if (!b.ok()) return {};
  const Status places = CheckPlaces(custom ? "loss.model" : StrCat("loss ", Name(loss.kind)),
                                    b.shape(values), mask.valid() ? b.shape(mask) : Shape(),
                                    weights.valid() ? b.shape(weights) : Shape());
  if (!places.ok()) return b.Fail(places);
  if (of_batch && loss.sum && !mask.valid() && !weights.valid())
    values = Weighted(b, values, 1 / static_cast<double>(b.shape(values).dim(0)));
  values = WeightedByMask(b, values, mask, loss.sum);
  return b.ok() ? WeightedBySample(b, values, weights) : Output();
}

// Returns the loss to minimise: the sum of the losses of all outputs and, if valid, the penalty.
Output AddLoss(Builder& b, const Model& model, const BuildOptions& options, const Feeds& feeds,
               const std::vector<Output>& predictions, const std::vector<Output>& masks,
               Output penalty) {
  const std::vector<MetricFetch> parts = LossesOfOutputs(model, options);
  Output loss, sum;
  for (size_t i = 0; i < options.objectives.size(); ++i) {
    const Objective& objective = options.objectives[i];
    const Output values = LossesOf(b, objective.loss, predictions[i], feeds.labels[i], masks[i],
                                   feeds.sample_weights[i]);
    if (!b.ok()) return {};
    const Output losses = PerExample(b, values, objective.loss.sum);
    const Output batch = Sum(b, losses, {});
    const Output own = objective.loss.sum ? batch : Mean(b, losses, {});
    if (!parts.empty()) b.AddFetch(parts[i].fetch, batch);
    loss = Total(b, loss, Weighted(b, own, objective.weight));
    sum = Total(b, sum, Weighted(b, batch, objective.weight));
  }
  if (penalty.valid()) {
    loss = Add(b, loss, penalty);
    sum = Add(b, sum, Weighted(b, penalty, static_cast<double>(options.batch_size)));
  }
  b.AddFetch(kLoss, loss);
  b.AddFetch(kLossSum, Checked(b, options, feeds, sum, "the loss"));
  return loss;
}

void AddMetrics(Builder& b, const Model& model, const BuildOptions& options, const Feeds& feeds,
                const std::vector<Output>& predictions, const std::vector<Output>& masks) {
  for (const NamedMetric& metric : NamedMetricsOf(model, options)) {
    const size_t i = metric.output;
    const Objective& objective = options.objectives[i];
    const Output mask = objective.masked ? masks[i] : Output();
    const Output weights = metric.weighted ? feeds.sample_weights[i] : Output();
    const Metric& own = metric.fetch.metric;
    const Output sums =
        own.kind == Metric::kCustom
            ? CustomMetricSums(b, own, predictions[i], feeds.labels[i], mask, weights)
            : MetricSums(b, own, objective.loss, predictions[i], feeds.labels[i], mask, weights);
    if (!b.ok()) return;
    b.AddFetch(metric.fetch.fetch, sums);
  }
}

// Adds the sums of the loss and the metrics to the totals.
void AddToTotals(Builder& b, const BuildOptions& options, BuiltGraph& built) {
  if (!options.totals || !options.optimizer || !b.ok()) return;
  const auto add = [&](const std::string& fetch) {
    const Output sum = b.graph().FindFetch(fetch)->output;
    built.totals.push_back(b.shape(sum));
    AssignAdd(b, TotalName(fetch), sum);
  };
  add(kLossSum);
  for (const MetricFetch& metric : built.metrics) add(metric.fetch);
}

void Contribute(Builder& b, const BuildOptions& options, Change change, const std::string& variable,
                Output value, Output indices, BuiltGraph& built) {
  if (options.optimizer && change != Change::kGradientRows) return;
  Contribution contribution{variable, change, ContributionName(change, variable), ""};
  b.AddFetch(contribution.fetch, value);
  if (change == Change::kGradientRows) {
    contribution.indices = StrCat("indices/", variable);
    b.AddFetch(contribution.indices, indices);
  }
  built.contributions.push_back(std::move(contribution));
}

// Returns the gradients of the loss, multiplied by its weight (BuildOptions::weighted). If `scale`
// is valid, multiplies the loss by the scale and divides the gradients by it.
std::vector<graph::GradientOrRows> GradientsOfLoss(Builder& b, const BuildOptions& options,
                                                   Output loss, Output scale,
                                                   const std::vector<Output>& wrt) {
  if (options.weighted && graph::Exchanges(b.graph()).empty())
    loss = Mul(b, loss, Placeholder(b, kLossWeight, DType::kFloat32, {}));
  if (scale.valid()) loss = Mul(b, loss, scale);
  std::vector<graph::GradientOrRows> gradients;
  if (options.gradient_rows) {
    gradients = GradientsOrRows(b, loss, wrt);
  } else {
    for (const Output gradient : Gradients(b, loss, wrt))
      gradients.push_back({.dense = gradient, .rows = {}});
  }
  for (graph::GradientOrRows& gradient : gradients) {
    if (!scale.valid() || !b.ok()) break;
    Output& value = gradient.by_rows() ? gradient.rows.values : gradient.dense;
    value = Div(b, value, scale);
  }
  return gradients;
}

// Adds the gradients of all trainable variables, starting with the last layer.
Status AddGradients(Builder& b, const BuildOptions& options, const Feeds& feeds,
                    const std::vector<Output>& reads, Output loss, BuiltGraph& built) {
  std::vector<const VariableSpec*> trained;
  std::vector<Output> wrt;
  for (size_t v = reads.size(); v-- > 0;) {
    if (!built.variables[v].trained()) continue;
    trained.push_back(&built.variables[v]);
    wrt.push_back(reads[v]);
  }
  if (trained.empty())
    return InvalidArgument("the model has no trainable variables: there is nothing to train");
  std::vector<graph::GradientOrRows> gradients =
      GradientsOfLoss(b, options, loss, feeds.loss_scale, wrt);
  if (!b.ok()) return b.status();
  for (size_t i = 0; i < trained.size(); ++i) {
    Output& value = gradients[i].by_rows() ? gradients[i].rows.values : gradients[i].dense;
    value = Checked(b, options, feeds, value, StrCat("the gradient of ", trained[i]->name));
  }
  std::vector<Output> values;
  for (const graph::GradientOrRows& gradient : gradients) values.push_back(gradient.values());
  // If a gradient is given by rows, clipping these rows suffices: all other rows are zero, and
  // clipping does not change zeros.
  if (!options.optimizer) values = ClipGradients(b, options.clipping, std::move(values));
  if (!b.ok()) return b.status();
  std::vector<VariableGradient> applied;
  for (size_t i = 0; i < trained.size(); ++i) {
    const Change change = gradients[i].by_rows() ? Change::kGradientRows : Change::kGradient;
    const Output indices = gradients[i].by_rows() ? gradients[i].rows.indices : Output();
    Contribute(b, options, change, trained[i]->name, values[i], indices, built);
    applied.push_back({trained[i], values[i], indices});
  }
  if (options.optimizer)
    ApplyGradients(b, *options.optimizer, options.clipping, std::move(applied), feeds.step);
  return OkStatus();
}

// Returns an error if Objective::masked is wrong for an output with metrics. The number of sums of
// a metric depends on this flag.
Status ExpectFoundMasks(const Model& model, const BuildOptions& options,
                        const std::vector<Output>& masks) {
  for (size_t i = 0; i < options.objectives.size(); ++i) {
    const Objective& objective = options.objectives[i];
    if (!IsMeasured(objective) || masks[i].valid() == objective.masked) continue;
    return Internal("the output of ", Describe(LayerOf(model, model.outputs[i])), " has ",
                    objective.masked ? "no mask" : "a mask, which FindMasks has not found");
  }
  return OkStatus();
}

Status CheckObjectives(const Model& model, const BuildOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<TensorType> outputs, OutputTypes(model, options.features));
  if (options.objectives.size() != outputs.size()) {
    return InvalidArgument("model ", model.name, " has ", outputs.size(), " outputs, but ",
                           options.objectives.size(), " losses are given; give one per output");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Objective& objective = options.objectives[i];
    const TensorType& labels = objective.labels;
    Status status =
        objective.loss.kind == LossKind::kCustom
            ? Annotate(CheckCustomLoss(objective.loss, outputs[i].shape, labels), "loss.model")
            : CheckLoss(objective.loss, outputs[i].shape, labels.dtype, labels.shape);
    for (const auto* metrics : {&objective.metrics, &objective.weighted_metrics}) {
      for (const Metric& metric : *metrics) {
        if (!status.ok()) break;
        status = metric.kind == Metric::kCustom
                     ? CheckCustomMetric(metric, outputs[i].shape, labels)
                     : CheckMetric(metric, outputs[i].shape, labels.dtype, labels.shape);
      }
    }
    const std::optional<Shape>& weights = objective.sample_weights;
    if (status.ok() && weights && weights->rank() > 0 && *weights != PlacesOf(outputs[i].shape)) {
      status =
          InvalidArgument("expected sample weights of shape [] or ",
                          PlacesOf(outputs[i].shape).ToString(), ", got ", weights->ToString());
    }
    const Layer& last = LayerOf(model, model.outputs[i]);
    RETURN_IF_ERROR(Annotate(status, StrCat("after ", Describe(last))));
  }
  return OkStatus();
}

Status Separate(const std::vector<std::string>& tables, BuiltGraph& built) {
  if (tables.empty()) return OkStatus();
  ASSIGN_OR_RETURN(graph::SeparatedGraph separated, graph::SeparateTables(built.graph, tables));
  built.graph = std::move(separated.graph);
  built.table_ids = std::move(separated.ids);
  built.tables = std::move(separated.tables);
  return OkStatus();
}

}  // namespace

std::string LabelsName(const Model& model, size_t output) {
  if (model.outputs.size() == 1) return kLabels;
  return StrCat(kLabels, "/", OutputNames(model)[output]);
}

std::string SampleWeightsName(const Model& model, size_t output) {
  if (model.outputs.size() == 1) return kSampleWeights;
  return StrCat(kSampleWeights, "/", OutputNames(model)[output]);
}

std::string PredictionName(const Model& model, size_t output) {
  if (model.outputs.size() == 1) return kPrediction;
  return StrCat(kPrediction, "/", OutputNames(model)[output]);
}

std::string ContributionName(Change change, const std::string& variable) {
  return StrCat(change == Change::kAssign ? "assignments/" : "gradients/", variable);
}

std::string TotalName(const std::string& fetch) {
  return StrCat("totals/", fetch);
}

void FindMasks(const Model& model, BuildOptions& options) {
  if (std::ranges::none_of(options.objectives, IsMeasured)) return;
  BuildOptions prediction = options;
  prediction.mode = Mode::kPredict;
  prediction.batch_size = 1;
  Builder b;
  const Feeds feeds = AddFeeds(b, model, prediction);
  const auto variables = Variables(model, options.features);
  ENFORCE(variables.ok(), "inputs that the model accepts");
  LayerCall call{.b = b, .inputs = feeds.features, .variables = ReadVariables(b, *variables)};
  Forward(model, call);
  for (size_t i = 0; i < options.objectives.size() && b.ok(); ++i)
    options.objectives[i].masked = (*call.output_masks)[i].valid();
}

std::vector<MetricFetch> MetricsOf(const Model& model, const BuildOptions& options) {
  std::vector<MetricFetch> metrics = LossesOfOutputs(model, options);
  for (NamedMetric& metric : NamedMetricsOf(model, options))
    metrics.push_back(std::move(metric.fetch));
  return metrics;
}

namespace {

// Returns Internal if the shape of a prediction differs from the shape that OutputTypes returns.
// Callers allocate memory for predictions according to OutputTypes.
Status ExpectDeclaredShapes(const Builder& b, const Model& model, const BuildOptions& options,
                            const std::vector<Output>& predictions) {
  if (!b.ok()) return OkStatus();  // Finish returns the error
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, OutputTypes(model, options.features));
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Shape declared = Batched(options.batch_size, types[i].shape);
    if (b.shape(predictions[i]) == declared) continue;
    return Internal("output ", i, " of model ", model.name, " has shape ",
                    b.shape(predictions[i]).ToString(), ", but its layers declare ",
                    declared.ToString());
  }
  return OkStatus();
}

}  // namespace

StatusOr<BuiltGraph> Build(const Model& model, const BuildOptions& options) {
  ENFORCE(options.batch_size > 0, "batch sizes are checked where they are read");
  BuiltGraph built;
  built.examples = options.batch_size;
  ASSIGN_OR_RETURN(built.variables, Variables(model, options.features));
  if (options.mode != Mode::kPredict) RETURN_IF_ERROR(CheckObjectives(model, options));
  Builder b;
  const Feeds feeds = AddFeeds(b, model, options);
  const std::vector<Output> reads = ReadVariables(b, built.variables);
  LayerCall call{.b = b,
                 .inputs = feeds.features,
                 .variables = reads,
                 .training = options.mode == Mode::kTrain,
                 .step = feeds.step,
                 .seed = feeds.seed,
                 .replica = options.replica};
  std::vector<Output> predictions = Forward(model, call);
  for (Output& prediction : predictions) prediction = Widened(b, prediction);
  RETURN_IF_ERROR(ExpectDeclaredShapes(b, model, options, predictions));
  for (size_t i = 0; i < predictions.size() && options.mode != Mode::kTrain; ++i)
    b.AddFetch(PredictionName(model, i), predictions[i]);
  if (options.mode != Mode::kPredict && b.ok()) {
    const std::vector<Output>& masks = *call.output_masks;
    RETURN_IF_ERROR(ExpectFoundMasks(model, options, masks));
    const Output penalty = TotalPenalty(b, built.variables, call);
    const Output loss = AddLoss(b, model, options, feeds, predictions, masks, penalty);
    AddMetrics(b, model, options, feeds, predictions, masks);
    built.metrics = MetricsOf(model, options);
    if (options.mode == Mode::kTrain && b.ok()) {
      AddToTotals(b, options, built);
      for (const LayerCall::Assignment& assignment : call.assignments) {
        const VariableSpec& variable = built.variables[assignment.variable];
        if (variable.frozen_by_name) continue;
        const std::string& name = variable.name;
        Contribute(b, options, Change::kAssign, name, assignment.value, {}, built);
        if (!options.optimizer) continue;
        Assign(b, name,
               Checked(b, options, feeds, assignment.value, StrCat("the new value of ", name)));
      }
      RETURN_IF_ERROR(AddGradients(b, options, feeds, reads, loss, built));
    }
  }
  ASSIGN_OR_RETURN(built.graph, std::move(b).Finish());
  RETURN_IF_ERROR(Separate(options.tables, built));
  return built;
}

std::vector<std::string> SeparableTables(const BuiltGraph& built) {
  std::vector<std::string> tables = graph::SeparableTables(built.graph);
  std::erase_if(tables, [&](const std::string& table) {
    const auto found = std::ranges::find(built.contributions, table, &Contribution::variable);
    return found != built.contributions.end() && found->change != Change::kGradientRows;
  });
  return tables;
}

StatusOr<graph::Graph> BuildUpdates(const BuiltGraph& training,
                                    const optimizer::Optimizer& optimizer,
                                    const optimizer::Clipping& clipping) {
  Builder b;
  const Output step = Placeholder(b, kStep, DType::kInt64, {});
  const auto feed = [&](const std::string& name) {
    const TensorType& type = training.graph.type(training.graph.FindFetch(name)->output);
    return Placeholder(b, name, type.dtype, type.shape);
  };
  std::vector<VariableGradient> gradients;
  for (const Contribution& contribution : training.contributions) {
    const Output value = feed(contribution.fetch);
    if (contribution.change == Change::kAssign) {
      Assign(b, contribution.variable, value);
      continue;
    }
    const bool rows = contribution.change == Change::kGradientRows;
    const auto variable =
        std::ranges::find(training.variables, contribution.variable, &VariableSpec::name);
    gradients.push_back({&*variable, value, rows ? feed(contribution.indices) : Output()});
  }
  ApplyGradients(b, optimizer, clipping, std::move(gradients), step);
  return std::move(b).Finish();
}

}  // namespace tfjob::model
