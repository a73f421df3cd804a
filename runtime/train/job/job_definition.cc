#include "runtime/train/job/job_definition.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/philox.h"
#include "runtime/data/bucket_batches.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/weights.h"
#include "runtime/model/layer_patterns.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/compiled_model.h"
#include "runtime/train/job/loss_model.h"
#include "runtime/train/job/make_optimizer.h"

namespace tfjob::train {
namespace {

// Reads the metrics in `list`, which is the value of `key` and may be null.
StatusOr<std::vector<model::Metric>> ReadMetrics(const char* key, const Json* list) {
  std::vector<model::Metric> metrics;
  if (list == nullptr) return metrics;
  ASSIGN_OR_RETURN(const auto elements, JsonField(*list, key).Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(model::Metric metric, model::ReadMetric(element));
    if (metric.kind == model::Metric::kCustom) {
      ASSIGN_OR_RETURN(metric.model, ReadMetricModel(element["model"]));
    }
    for (const model::Metric& other : metrics) {
      if (other != metric) continue;
      return InvalidArgument(element.path(), ": metric ", Name(metric),
                             " is listed twice; keep one of the two");
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

StatusOr<model::Objective> ObjectiveOf(const config::TrainingConfig& config) {
  model::Objective objective{.weight = config.loss_weight};
  if (IsCustom(config.loss)) {
    objective.loss.kind = model::LossKind::kCustom;
    ASSIGN_OR_RETURN(objective.loss.model, ReadLossModel(config.loss));
  } else {
    ASSIGN_OR_RETURN(objective.loss.kind, model::ParseLoss(config.loss.name));
  }
  objective.loss.from_logits = config.loss.from_logits;
  objective.loss.label_smoothing = config.loss.label_smoothing.value_or(0);
  objective.loss.alpha = config.loss.alpha;
  objective.loss.gamma = config.loss.gamma;
  objective.loss.delta = config.loss.delta.value_or(objective.loss.delta);
  objective.loss.q = config.loss.q.value_or(objective.loss.q);
  objective.loss.apply_class_balancing = config.loss.apply_class_balancing.value_or(false);
  objective.loss.ignore_class = config.loss.ignore_class;
  objective.loss.beta = config.loss.beta.value_or(objective.loss.beta);
  objective.loss.margin = config.loss.margin.value_or(objective.loss.margin);
  objective.loss.remove_diagonal = config.loss.remove_diagonal.value_or(true);
  objective.loss.axes.assign(config.loss.axis.begin(), config.loss.axis.end());
  objective.loss.sum = config.loss.reduction == config::Reduction::kSum;
  ASSIGN_OR_RETURN(objective.metrics, ReadMetrics("metrics", config.metrics.get()));
  ASSIGN_OR_RETURN(objective.weighted_metrics,
                   ReadMetrics("weighted_metrics", config.weighted_metrics.get()));
  return objective;
}

int64_t CeilDivide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t BatchesPerStep(const config::TrainingConfig& config, int training_tasks, bool together) {
  return together ? 1 : config::GradientsPerStep(config.strategy, training_tasks);
}

// Returns config::BucketBatchSizes for these buckets.
std::vector<int64_t> BucketSizes(const config::TrainingConfig& config, const data::Buckets& buckets,
                                 int rank, int training_tasks, bool together) {
  return config::BucketBatchSizes(config, buckets.lengths().back(), rank, training_tasks, together);
}

// Returns the number of examples in a full batch or, with buckets, in a full batch of the longest
// bucket.
int64_t UsualBatch(const config::TrainingConfig& config, const data::Source& source, int rank,
                   int training_tasks, bool together) {
  if (const data::Buckets* buckets = source.buckets())
    return BucketSizes(config, *buckets, rank, training_tasks, together).back();
  return together ? config::GlobalBatchSize(config, training_tasks)
                  : config::BatchSize(config, rank, training_tasks);
}

Status CheckBatch(const config::TrainingConfig& config, int training_tasks, bool together) {
  if (!config.global_batch_size) return OkStatus();
  if (training_tasks == 0) {
    return InvalidArgument(
        "global_batch_size: the number of training tasks is unknown with enableDynamicWorker; set "
        "batch_size instead");
  }
  if (together) {
    if (*config.global_batch_size >= training_tasks) return OkStatus();
    return InvalidArgument("global_batch_size: expected at least one example for each of the ",
                           training_tasks, " training tasks, got ", *config.global_batch_size);
  }
  // Parameter servers give the gradients of all tasks the same weight, so all tasks need batches of
  // the same size.
  if (*config.global_batch_size % training_tasks == 0) return OkStatus();
  return InvalidArgument("global_batch_size: expected a multiple of the ", training_tasks,
                         " training tasks, got ", *config.global_batch_size);
}

std::string BucketAgreement(const config::BucketConfig& buckets) {
  if (!buckets.present()) return "";
  return StrCat("data.bucket_by_length.boundaries: ", absl::StrJoin(buckets.boundaries, ", "),
                "\ndata.bucket_by_length.batch_sizes: ", absl::StrJoin(buckets.batch_sizes, ", "),
                "\ndata.bucket_by_length.batch_tokens: ", buckets.batch_tokens.value_or(0),
                "\ndata.bucket_by_length.padding: ",
                buckets.padding ? StrCat(*buckets.padding) : "that of the data", "\n");
}

// Returns the largest number of tasks that a job may have, at least 1. If the number may change, it
// does not depend on the number at the start.
int64_t LargestTaskCount(const config::TrainingConfig& config, int training_tasks) {
  const int64_t most = config.strategy.IsElastic() ? *config.strategy.max_replicas : training_tasks;
  return std::max<int64_t>(most, 1);
}

StatusOr<data::PipelineOptions> CommonPipeline(const config::TrainingConfig& config, Split split,
                                               const strategy::ModelDefinition& definition,
                                               const data::Source& source) {
  ASSIGN_OR_RETURN(const BatchColumns columns, ColumnsOf(config, split, definition.model, source));
  return data::PipelineOptions{.seed = static_cast<uint64_t>(config.seed),
                               .prefetch = config.data.prefetch,
                               .columns = columns.All()};
}

}  // namespace

namespace {

StatusOr<model::Model> ReadArchitecture(const config::ModelConfig& config) {
  if (config.layers != nullptr) return model::ReadLayers(JsonField(*config.layers, "model.layers"));
  if (!config.file.empty()) return keras::ReadModelFile(config.file);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(config.keras_json));
  return model::ReadKerasJson(text, config.keras_json);
}

}  // namespace

StatusOr<model::Model> ReadModel(const config::ModelConfig& config) {
  ASSIGN_OR_RETURN(model::Model model, ReadArchitecture(config));
  if (config.dtype_policy.empty()) return model;
  const auto policy = model::ParseDTypePolicy(config.dtype_policy);
  ENFORCE(policy.has_value(), "the keys list the policies");
  if (model::SetPolicy(model, *policy)) return model;
  const auto named = std::ranges::find_if(
      model.layers, [](const model::Layer& layer) { return layer.policy.has_value(); });
  return InvalidArgument("model.dtype_policy: ", config.dtype_policy,
                         " would change no layer: ", "each names its own policy, such as ",
                         model::Describe(*named), " with ", model::Name(*named->policy),
                         "; remove this key, or change the layers");
}

StatusOr<state::Snapshot> StartState(const config::TrainingConfig& config,
                                     const strategy::ModelDefinition& definition,
                                     std::span<const int> streamed) {
  state::Snapshot snapshot = strategy::InitialState(definition, streamed);
  if (config.model.weights.empty()) return snapshot;
  const auto read = [&]() -> StatusOr<std::vector<std::optional<keras::StoredValue>>> {
    ASSIGN_OR_RETURN(
        const keras::Weights weights,
        keras::OpenWeights(config.model.weights, definition.model, definition.variables));
    return keras::OpenValues(weights, definition.variables, config.model.weights_skip, streamed);
  };
  auto values = read();
  if (!values.ok()) return Annotate(values.status(), "model.weights");
  std::vector<size_t> given;
  for (size_t i = 0; i < values->size(); ++i) {
    if (!(*values)[i]) continue;
    const state::Variable& variable = definition.state.variables[i];
    const optimizer::Optimizer& optimizer = definition.state.optimizer;
    auto& [whole, pieces] = *(*values)[i];
    snapshot.variables[i] =
        pieces ? state::VariableState::Initial(variable, optimizer,
                                               StreamedFromFile(std::move(pieces)))
               : state::VariableState::Initial(variable, optimizer, std::move(whole));
    given.push_back(i);
  }
  if (config.model.optimizer_state.empty()) return snapshot;
  RETURN_IF_ERROR(
      Annotate(TakeOptimizerState(config.model.optimizer_state, definition, given, snapshot),
               "model.optimizer_state"));
  return snapshot;
}

StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config, Split split,
                                                const data::Source& source, int training_tasks) {
  ASSIGN_OR_RETURN(model::Model model, ReadModel(config.model));
  return DefineModel(config, split, source, training_tasks, std::move(model));
}

StatusOr<strategy::ModelDefinition> DefineState(const config::TrainingConfig& config,
                                                model::Model model,
                                                std::vector<model::TensorType> features) {
  strategy::ModelDefinition definition;
  definition.seed = config.seed;
  definition.model = std::move(model);
  RETURN_IF_ERROR(model::Freeze(definition.model, config.model.frozen));
  definition.build.features = std::move(features);
  ASSIGN_OR_RETURN(definition.state.optimizer, MakeOptimizer(config.optimizer));
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  return definition;
}

StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config, Split split,
                                                const data::Source& source, int training_tasks,
                                                model::Model model) {
  strategy::ModelDefinition definition;
  definition.seed = config.seed;
  definition.model = std::move(model);
  RETURN_IF_ERROR(model::Freeze(definition.model, config.model.frozen));
  RETURN_IF_ERROR(model::Recompute(definition.model, config.model.recompute));
  ASSIGN_OR_RETURN(const BatchColumns columns, ColumnsOf(config, split, definition.model, source));
  ASSIGN_OR_RETURN(const auto outputs, OutputConfigs(config, definition.model));
  for (const config::TrainingConfig& output : outputs) {
    ASSIGN_OR_RETURN(definition.build.objectives.emplace_back(), ObjectiveOf(output));
  }
  columns.Describe(definition.build);
  definition.build.batch_size = UsualBatch(config, source, 0, training_tasks, /*together=*/false);
  ASSIGN_OR_RETURN(definition.state.optimizer, MakeOptimizer(config.optimizer));
  definition.build.clipping = ClippingOf(config.optimizer);
  if (config::GradientsPerStep(config.strategy, training_tasks) < 1) {
    return InvalidArgument(
        "strategy.replicas_to_aggregate: the number of training tasks is unknown with "
        "enableDynamicWorker, so mode sync needs a number here");
  }
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  return definition;
}

StatusOr<data::Sharding> ShardingOf(const config::TrainingConfig& config, int training_tasks) {
  const config::ShardPolicy shard = config.data.shard;
  const bool known = training_tasks > 0;
  if (shard == config::ShardPolicy::kOff) return data::Sharding::kOff;
  if (shard == config::ShardPolicy::kAuto)
    return known ? data::Sharding::kData : data::Sharding::kOff;
  const bool file = shard == config::ShardPolicy::kFile;
  if (known) return file ? data::Sharding::kFile : data::Sharding::kData;
  return InvalidArgument("data.shard: ", file ? "file" : "data", " needs the number of training ",
                         "tasks, which is unknown with enableDynamicWorker; use auto or off");
}

StatusOr<data::PipelineOptions> TrainingPipeline(const config::TrainingConfig& config,
                                                 const strategy::ModelDefinition& definition,
                                                 const data::Source& source, int rank,
                                                 int training_tasks, bool together) {
  RETURN_IF_ERROR(CheckBatch(config, training_tasks, together));
  ASSIGN_OR_RETURN(data::PipelineOptions options,
                   CommonPipeline(config, Split::kTrain, definition, source));
  options.batch_size = UsualBatch(config, source, rank, training_tasks, /*together=*/false);
  if (together) options.global_batch = UsualGlobalBatch(config, source, training_tasks);
  if (const data::Buckets* buckets = source.buckets())
    options.bucket_batches = BucketSizes(config, *buckets, rank, training_tasks, together);
  options.shuffle = config.data.shuffle;
  options.shuffle_buffer = config.data.shuffle_buffer;
  ASSIGN_OR_RETURN(options.sharding, ShardingOf(config, training_tasks));
  options.worker = rank;
  options.workers = training_tasks > 0 ? training_tasks : rank + 1;
  options.file_groups = LargestTaskCount(config, training_tasks);
  options.drop_remainder = config.data.drop_remainder;
  return options;
}

StatusOr<data::PipelineOptions> EvaluationPipeline(const config::TrainingConfig& config,
                                                   const strategy::ModelDefinition& definition,
                                                   const data::Source& source) {
  ASSIGN_OR_RETURN(data::PipelineOptions options,
                   CommonPipeline(config, Split::kEval, definition, source));
  const int64_t given = config.eval.batch_size;
  options.batch_size = given > 0 ? given : UsualBatch(config, source, 0, 1, /*together=*/false);
  if (const data::Buckets* buckets = source.buckets()) {
    options.bucket_batches = BucketSizes(config, *buckets, 0, 1, /*together=*/false);
    if (given > 0) options.bucket_batches.assign(buckets->count(), given);
  }
  options.epochs = 1;
  options.shuffle = false;
  return options;
}

StatusOr<data::PipelineOptions> PredictionPipeline(const config::TrainingConfig& config,
                                                   const model::Model& model,
                                                   const data::Source& source) {
  ASSIGN_OR_RETURN(std::vector<data::Column> inputs,
                   InputColumnsOf(config, Split::kEval, model, source));
  return data::PipelineOptions{.batch_size = config.eval.batch_size,
                               .epochs = 1,
                               .shuffle = false,
                               .seed = static_cast<uint64_t>(config.seed),
                               .prefetch = config.data.prefetch,
                               .columns = std::move(inputs)};
}

int64_t UsualGlobalBatch(const config::TrainingConfig& config, const data::Source& source,
                         int training_tasks) {
  return UsualBatch(config, source, 0, training_tasks, /*together=*/true);
}

int64_t BatchesPerEpoch(const config::TrainingConfig& config, const data::Source& source,
                        int training_tasks, bool together) {
  if (const data::Buckets* buckets = source.buckets()) {
    // With buckets, the count covers the batches of all tasks.
    return data::BucketBatches::Count(*buckets,
                                      BucketSizes(config, *buckets, 0, training_tasks, together),
                                      config.data.drop_remainder);
  }
  const int64_t examples = source.size();
  const auto batches_of = [&](int64_t rows, int64_t size) {
    return config.data.drop_remainder ? rows / size : CeilDivide(rows, size);
  };
  const bool off = config.data.shard == config::ShardPolicy::kOff;
  if (together) {
    const int64_t batch = config::GlobalBatchSize(config, training_tasks);
    return batches_of(examples,
                      off ? CeilDivide(batch, LargestTaskCount(config, training_tasks)) : batch);
  }
  int64_t batches = 0;
  training_tasks = std::max(training_tasks, 1);
  for (int rank = 0; rank < training_tasks; ++rank) {
    const int64_t rows =
        off ? examples : CeilDivide(std::max<int64_t>(examples - rank, 0), training_tasks);
    const int64_t size = config::BatchSize(config, rank, training_tasks);
    batches += batches_of(rows, size);
  }
  return batches;
}

int64_t StepsPerEpoch(const config::TrainingConfig& config, const data::Source& source,
                      int training_tasks, bool together) {
  const int64_t batches = BatchesPerEpoch(config, source, training_tasks, together);
  return std::max<int64_t>(1, batches / BatchesPerStep(config, training_tasks, together));
}

int64_t TotalSteps(const config::TrainingConfig& config, const data::Source& source,
                   int training_tasks, bool together) {
  int64_t steps = config.max_steps > 0 ? config.max_steps : INT64_MAX;
  const int64_t per_epoch = BatchesPerEpoch(config, source, training_tasks, together);
  // If the number of batches would overflow, `epochs` imposes no limit.
  if (config.epochs > 0 && per_epoch <= INT64_MAX / 2 / config.epochs) {
    const int64_t batches = config.epochs * per_epoch;
    steps = std::min(steps, CeilDivide(batches, BatchesPerStep(config, training_tasks, together)));
  }
  return steps;
}

std::string TrainingAgreement(const config::TrainingConfig& config, const data::Source& source) {
  return StrCat("max_steps: ", config.max_steps, "\nepochs: ", config.epochs,
                "\nexamples of data.train: ", source.size(),
                source.fingerprint() == 0
                    ? ""
                    : StrCat("\nfingerprint of data.train's records: ", source.fingerprint()),
                "\ndata.train.scale: ", config.data.train.scale,
                "\ndata.shuffle: ", config.data.shuffle ? "true" : "false",
                config.data.shuffle_buffer > 0
                    ? StrCat("\ndata.shuffle_buffer: ", config.data.shuffle_buffer)
                    : "",
                config.data.shard == config::ShardPolicy::kAuto
                    ? ""
                    : StrCat("\ndata.shard: ", static_cast<int>(config.data.shard)),
                "\ndata.drop_remainder: ", config.data.drop_remainder ? "true" : "false", "\n",
                BucketAgreement(config.data.bucket_by_length));
}

}  // namespace tfjob::train
