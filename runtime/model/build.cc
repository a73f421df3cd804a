#include "runtime/model/build.h"

#include <map>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/clip_gradients.h"
#include "runtime/model/layer_call.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

Shape Batched(int64_t batch_size, const Shape& example) {
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), batch_size);
  return Shape(std::move(dims));
}

struct Feeds {
  Output features, labels, step, seed;
};

Feeds AddFeeds(Builder& b, const BuildOptions& options) {
  Feeds feeds;
  feeds.features = Placeholder(b, kFeatures, DType::kFloat32,
                               Batched(options.batch_size, options.feature_shape));
  if (options.mode != Mode::kPredict) {
    feeds.labels = Placeholder(b, kLabels, options.label_dtype,
                               Batched(options.batch_size, options.label_shape));
  }
  if (options.mode == Mode::kTrain) {
    feeds.step = Placeholder(b, kStep, DType::kInt64, {});
    feeds.seed = Placeholder(b, kSeed, DType::kInt64, {});
  }
  return feeds;
}

using Reads = std::map<std::string, Output, std::less<>>;

// Reads every variable once, however often its layer is called.
Reads ReadVariables(Builder& b, const std::vector<VariableSpec>& variables) {
  Reads reads;
  for (const VariableSpec& variable : variables) {
    reads[variable.name] = ReadVariable(b, variable.name, variable.dtype, variable.shape);
  }
  return reads;
}

Output Forward(Builder& b, const Model& model, const BuildOptions& options, const Feeds& feeds,
               const Reads& reads) {
  std::vector<Output> values;
  for (const Call& call : model.calls) {
    const Layer& layer = model.layers[static_cast<size_t>(call.layer)];
    LayerCall at{.b = b,
                 .input = call.inputs.empty() ? feeds.features
                                              : values[static_cast<size_t>(call.inputs.front())],
                 .variables = {},
                 .training = options.mode == Mode::kTrain,
                 .step = feeds.step,
                 .seed = feeds.seed,
                 .replica = options.replica};
    if (!b.ok()) return {};
    const std::vector<int64_t>& dims = b.shape(at.input).dims();
    const Shape in(std::vector<int64_t>(dims.begin() + 1, dims.end()));
    for (const VariableSpec& variable : Variables(layer.config, in)) {
      at.variables.push_back(reads.at(StrCat(layer.name, "/", variable.name)));
    }
    const graph::NameScope scope(b, layer.name);
    values.push_back(Apply(layer.config, at));
  }
  return values[static_cast<size_t>(model.output)];
}

// Adds the loss and the metrics, with their fetches. Returns the loss to minimise.
Output AddObjective(Builder& b, const BuildOptions& options, const Feeds& feeds, Output prediction,
                    BuiltGraph& built) {
  const Output losses = LossPerExample(b, options.loss, prediction, feeds.labels);
  if (!b.ok()) return {};
  const Output sum = Sum(b, losses, {});
  const Output loss = options.loss.sum ? sum : Mean(b, losses, {});
  b.AddFetch(kLoss, loss);
  b.AddFetch(kLossSum, sum);
  for (Metric metric : options.metrics) {
    built.metrics.push_back({.metric = metric, .fetch = StrCat(Name(metric), "_sum")});
    b.AddFetch(built.metrics.back().fetch,
               Sum(b, MetricPerExample(b, metric, prediction, feeds.labels), {}));
  }
  return loss;
}

// Adds the gradient of every trainable variable, last layer first, and either applies it or adds a
// fetch for it.
Status AddUpdates(Builder& b, const BuildOptions& options, const Feeds& feeds, const Reads& reads,
                  Output loss, BuiltGraph& built) {
  std::vector<std::string> names;
  std::vector<Output> wrt;
  for (auto variable = built.variables.rbegin(); variable != built.variables.rend(); ++variable) {
    if (!variable->trainable) continue;
    names.push_back(variable->name);
    wrt.push_back(reads.at(variable->name));
  }
  if (names.empty())
    return InvalidArgument("the model has no trainable variables: there is nothing to train");
  std::vector<Output> gradients = Gradients(b, loss, wrt);
  if (!b.ok()) return b.status();
  gradients = ClipGradients(b, options.clipping, std::move(gradients));
  if (!b.ok()) return b.status();
  for (size_t i = 0; i < names.size(); ++i) {
    if (options.optimizer) {
      ApplyOptimizer(b, names[i], gradients[i], feeds.step,
                     optimizer::ToAttributes(*options.optimizer));
    } else {
      built.gradients.push_back({.variable = names[i], .fetch = GradientName(names[i])});
      b.AddFetch(built.gradients.back().fetch, gradients[i]);
    }
  }
  return OkStatus();
}

Status CheckObjective(const Model& model, const BuildOptions& options) {
  ASSIGN_OR_RETURN(const Shape output, OutputShape(model, options.feature_shape));
  const Layer& last =
      model.layers[static_cast<size_t>(model.calls[static_cast<size_t>(model.output)].layer)];
  Status status = CheckLoss(options.loss, output, options.label_dtype, options.label_shape);
  for (Metric metric : options.metrics) {
    if (status.ok()) status = CheckMetric(metric, output, options.label_dtype, options.label_shape);
  }
  return Annotate(status, StrCat("after ", Describe(last)));
}

}  // namespace

std::string GradientName(const std::string& variable) {
  return StrCat("gradients/", variable);
}

StatusOr<BuiltGraph> Build(const Model& model, const BuildOptions& options) {
  ENFORCE(options.batch_size > 0, "batch sizes are checked where they are read");
  BuiltGraph built;
  built.examples = options.batch_size;
  ASSIGN_OR_RETURN(built.variables, Variables(model, options.feature_shape));
  if (options.mode != Mode::kPredict) RETURN_IF_ERROR(CheckObjective(model, options));
  Builder b;
  const Feeds feeds = AddFeeds(b, options);
  const Reads reads = ReadVariables(b, built.variables);
  const Output prediction = Forward(b, model, options, feeds, reads);
  if (options.mode != Mode::kTrain) b.AddFetch(kPrediction, prediction);
  if (options.mode != Mode::kPredict) {
    const Output loss = AddObjective(b, options, feeds, prediction, built);
    if (options.mode == Mode::kTrain && b.ok()) {
      RETURN_IF_ERROR(AddUpdates(b, options, feeds, reads, loss, built));
    }
  }
  ASSIGN_OR_RETURN(built.graph, std::move(b).Finish());
  return built;
}

StatusOr<graph::Graph> BuildUpdates(const std::vector<VariableSpec>& variables,
                                    const optimizer::Optimizer& optimizer) {
  Builder b;
  const Output step = Placeholder(b, kStep, DType::kInt64, {});
  for (const VariableSpec& variable : variables) {
    if (!variable.trainable) continue;
    const Output gradient =
        Placeholder(b, GradientName(variable.name), variable.dtype, variable.shape);
    ApplyOptimizer(b, variable.name, gradient, step, optimizer::ToAttributes(optimizer));
  }
  return std::move(b).Finish();
}

}  // namespace tfjob::model
