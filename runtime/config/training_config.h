// The training file as a value: what to train, on what data, how and for how long. The file is YAML
// (or JSON), its keys are the table in keys.h; docs/training-file.md describes them and
// docs/training.schema.json is their JSON Schema.
//
//   ASSIGN_OR_RETURN(TrainingConfig config, ParseTrainingConfig(text, "training.yaml"));
//   RETURN_IF_ERROR(Override(config, "strategy.mode", "sync"));        // --strategy.mode=sync
//   RETURN_IF_ERROR(Validate(config));
//
// Errors are InvalidArgument and name the path of the key, what was expected and what came.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::config {

// One of the two is set.
struct ModelConfig {
  std::shared_ptr<const Json> layers;  // a list that the room model reads; null: none
  std::string keras_json;              // a file that Keras' model.to_json() wrote
};

enum class Reduction { kMean, kSum };

// The names of losses, metrics and optimizers are those of the rooms model and optimizer.
struct LossConfig {
  std::string name;
  bool from_logits = false;
  Reduction reduction = Reduction::kMean;
};

// `name` "": the learning rate is constant. Unset parameters have Keras' defaults.
struct ScheduleConfig {
  std::string name;
  std::optional<int64_t> decay_steps, warmup_steps;
  std::optional<double> decay_rate, end_learning_rate, power, alpha, warmup_target;
  std::optional<bool> staircase, cycle;
  std::vector<double> boundaries, values;
};

// Unset hyper-parameters have the optimizer's own default (Keras').
struct OptimizerConfig {
  std::string name = "sgd";
  std::optional<double> learning_rate, momentum, initial_accumulator_value, beta_1, beta_2, rho,
      epsilon;
  std::optional<bool> nesterov, centered;
  ScheduleConfig learning_rate_schedule;
};

enum class DataFormat { kNone, kIdx, kCsv, kLinear };
enum class LabelKind { kAuto, kClass, kOneHot, kValue };

// One set of examples. Which fields count depends on the format.
struct SourceConfig {
  DataFormat format = DataFormat::kNone;  // kNone: there is no such source
  double scale = 1;                       // features are multiplied by it

  std::string images, labels;  // idx: two files, plain or gz

  std::string file;          // csv
  bool header = true;        // csv: the first row holds names
  std::string label_column;  // csv: a name or an index, negative from the end; "" is the last
  std::string delimiter = ",";

  // linear: y = x·weights + bias + noise·N(0,1); x runs evenly over [low, high] when there is one
  // weight, else it is drawn uniformly.
  std::vector<double> weights = {2};
  double bias = 10, noise = 0.33, low = -1, high = 1;
  int64_t examples = 100;

  bool present() const { return format != DataFormat::kNone; }
};

struct DataConfig {
  SourceConfig train, eval;
  LabelKind labels = LabelKind::kAuto;  // see ResolvedLabels
  bool shuffle = true;
  bool drop_remainder = false;
  int64_t prefetch = 4;  // prepared batches in memory
};

enum class StrategyKind { kAuto, kOneDevice, kParameterServer };
enum class PsMode { kAsync, kSync };
enum class Placement { kRoundRobin, kBalanced };

struct StrategyConfig {
  StrategyKind kind =
      StrategyKind::kAuto;  // parameter_server when the cluster has a ps, else one_device
  PsMode mode = PsMode::kAsync;
  int64_t replicas_to_aggregate = 0;  // 0: the number of workers
  Placement placement = Placement::kRoundRobin;
  int64_t shard_bytes = 32 << 20;  // larger variables are split over the servers; 0: never
};

struct EvalConfig {
  int64_t batch_size = 0;  // 0: the training batch size
  int64_t steps = 0;       // batches a pass; 0: all
  double start_delay_secs = 0;
  double throttle_secs = 0;
};

struct TrainingConfig {
  ModelConfig model;
  LossConfig loss;
  std::vector<std::string> metrics;
  OptimizerConfig optimizer;
  DataConfig data;
  int64_t batch_size = 32;
  // Whichever ends first; 0: no limit. One of them is set.
  int64_t epochs = 0;
  int64_t max_steps = 0;
  StrategyConfig strategy;
  EvalConfig eval;

  std::string model_dir;  // "": nothing is saved
  // One of the two; see CheckpointEvery.
  std::optional<double> save_checkpoints_secs;
  std::optional<int64_t> save_checkpoints_steps;
  int64_t keep_checkpoint_max = 5;     // 0: all
  int64_t save_summary_steps = 100;    // 0: none
  int64_t log_step_count_steps = 100;  // 0: none

  int64_t seed = 0;
  int64_t threads = 0;  // 0: what the cgroup grants
};

// Reads the text; `what` names it in errors. Keys that belong together are checked by Validate,
// after the overrides.
StatusOr<TrainingConfig> ParseTrainingConfig(std::string_view text, std::string_view what);

// Sets one key ("data.train.images", "epochs") from text that is read as YAML, as a flag gives it.
// A list or a map may be given too ("metrics", "[accuracy]"). On error the config is as before.
Status Override(TrainingConfig& config, std::string_view path, std::string_view value);

// What only all keys together show: a model, a loss, data, an end, and no key that its neighbours
// make meaningless.
Status Validate(const TrainingConfig& config);

// When the chief saves: 600 s unless the file says otherwise. A value of 0 means off.
struct CheckpointTriggers {
  double secs = 600;
  int64_t steps = 0;
};
CheckpointTriggers CheckpointEvery(const TrainingConfig& config);

// data.labels, or what the loss wants: class numbers for sparse_categorical_crossentropy, one-hot
// rows for categorical_crossentropy and clipped_crossentropy, plain values for the others. Never
// kAuto.
LabelKind ResolvedLabels(const TrainingConfig& config);

// The file that gives this value, defaults written out, unset keys left out. Reading it gives the
// value again.
std::string PrintTrainingConfig(const TrainingConfig& config);  // YAML
Json TrainingConfigToJson(const TrainingConfig& config);

}  // namespace tfjob::config
