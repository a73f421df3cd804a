// Represents the training file, which is YAML or JSON, as a value: the model to train, the data,
// the strategy and the length of the run. keys.h declares the table of the keys,
// docs/training-file.md documents the keys, and docs/training.schema.json is their JSON Schema.
//
//   ASSIGN_OR_RETURN(TrainingConfig config, ParseTrainingConfig(text, "training.yaml"));
//   RETURN_IF_ERROR(Override(config, "strategy.mode", "sync"));        // --set strategy.mode=sync
//   RETURN_IF_ERROR(Validate(config));
//
// All errors are InvalidArgument. Their messages name the path of the key, the expected value and
// the actual value.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::config {

// Exactly one of `layers`, `keras_json` and `file` must be set.
struct ModelConfig {
  std::shared_ptr<const Json> layers;     // a list, parsed by runtime/model; null if none
  std::string keras_json;                 // a file written by Keras' model.to_json()
  std::string file;                       // a .keras file, or a whole model in an .h5 file
  std::string weights;                    // a file of weights to start from; "" if none
  std::string optimizer_state;            // a file with the optimizer's state; "" if none
  std::vector<std::string> weights_skip;  // patterns of variables that `weights` does not provide
  std::vector<std::string> frozen;        // patterns of layers and variables that are not trained
  std::vector<std::string> recompute;     // patterns of layers that are computed twice
  std::string dtype_policy;               // of layers that name none; "" for float32
};

enum class Reduction { kMean, kSum };

// runtime/model and runtime/optimizer define the names of losses, metrics and optimizers.
struct LossConfig {
  std::string name;
  bool from_logits = false;
  Reduction reduction = Reduction::kMean;
  // Unset arguments have Keras' defaults.
  std::optional<double> label_smoothing, alpha, gamma, delta, q, beta, margin;
  std::optional<bool> apply_class_balancing, remove_diagonal;
  std::optional<int64_t> ignore_class;
  std::vector<double> axis;  // integers; empty for all axes
  // For `custom`: the path of a file, as a string, or the content of such a file.
  std::shared_ptr<const Json> model = nullptr;
};

// An empty `name` means a constant learning rate. Unset parameters have Keras' defaults.
struct ScheduleConfig {
  std::string name;
  std::optional<int64_t> decay_steps, warmup_steps, first_decay_steps;
  std::optional<double> decay_rate, end_learning_rate, power, alpha, warmup_target, t_mul, m_mul;
  std::optional<bool> staircase, cycle;
  std::vector<double> boundaries, values;
};

// Unset hyperparameters have the optimizer's defaults, which are the same as in Keras.
struct OptimizerConfig {
  std::string name;  // "": the one in model.file; sgd if there is none
  std::optional<double> learning_rate, momentum, initial_accumulator_value, beta_1, beta_2, rho,
      epsilon, learning_rate_power, l1_regularization_strength, l2_regularization_strength,
      l2_shrinkage_regularization_strength, beta, weight_decay, ema_momentum;
  std::optional<bool> nesterov, centered, amsgrad, use_ema, lazy;
  std::optional<int64_t> ema_overwrite_frequency, gradient_accumulation_steps;
  std::vector<std::string> exclude_from_weight_decay;
  std::optional<double> clipvalue, clipnorm, global_clipnorm;  // at most one is set
  ScheduleConfig learning_rate_schedule;
};

enum class DataFormat {
  kNone,
  kIdx,
  kCsv,
  kNpz,
  kTfRecord,
  kJsonLines,
  kImages,
  kText,
  kTexts,
  kLinear,
  kSynthetic,
  // Formats that combine several datasets:
  kConcatenate,
  kMix,
  kInterleave,
  kZip
};
// When a mix stops: before any dataset runs out, or once all datasets have been read completely.
enum class MixStop { kFirst, kAll };
// Where the values of the examples are cached after they have been read.
enum class CacheKind { kNone, kMemory };
enum class OnDamaged { kFail, kSkip };
enum class ResizeMethod { kBilinear, kNearest };
// How the tasks share the training examples; the names are those of TensorFlow's AutoShardPolicy.
enum class ShardPolicy { kAuto, kFile, kData, kOff };
enum class LabelKind { kAuto, kClass, kOneHot, kValue };

// Specifies how text becomes token ids.
struct TokenizeConfig {
  std::string name;                        // "wordpiece", "bpe", "byte" or "tokenizer_json"
  std::string vocabulary;                  // a file; only for wordpiece and bpe
  std::string merges;                      // a file; only for bpe
  std::string file;                        // only for tokenizer_json
  std::optional<bool> lower_case;          // wordpiece; unset: true
  std::optional<bool> strip_accents;       // wordpiece; unset: as lower_case
  std::optional<bool> add_special_tokens;  // unset: true, but false for bpe
  int64_t max_length = 0;                  // number of ids
  bool truncate = false;
};

// Specifies how a feature of a tf.train.Example, or a member of a JSON object, is parsed. The names
// are the same as in tf.io.
struct FeatureConfig {
  std::string dtype;  // "float32", "int64" or "string"
  // If only `shape` is set, a FixedLenFeature. If only `max_length` is set, a VarLenFeature, padded
  // with default_value. If both are set, a FixedLenSequenceFeature, whose steps have this shape,
  // padded to max_length steps.
  std::optional<std::vector<int64_t>> shape;
  std::optional<int64_t> max_length;
  std::optional<double> default_value;
  std::string decode_raw;  // the type of the elements that a string consists of
  // The string is a JPEG or PNG image, which becomes float32 of this shape.
  bool decode_image = false;
  std::optional<ResizeMethod> resize;        // of images; unset: bilinear
  std::optional<bool> crop_to_aspect_ratio;  // of images; unset: false
  std::optional<TokenizeConfig> tokenize;    // the string becomes token ids (int64)
  // The strings are terms, which become int64. At most one of `terms` and `vocabulary` is set.
  std::vector<std::string> terms;
  std::string vocabulary;                  // a file with one term per line
  std::optional<int64_t> num_oov_indices;  // of terms; unset: 1
  std::vector<std::string> columns;        // csv: of the elements; empty: the one of the same name
};

// One set of examples. The format determines which fields apply.
struct SourceConfig {
  DataFormat format = DataFormat::kNone;  // kNone if there is no such source
  double scale = 1;                       // factor applied to the float32 inputs

  std::string images, labels;  // idx: two files, plain or gzipped

  std::string file;          // csv, npz
  bool header = true;        // csv: the first row contains names
  std::string label_column;  // csv: a name, or an index (from the end if negative); "" for the last
  std::string delimiter = ",";

  // npz, tfrecord, jsonl, csv with features: map the names of inputs and outputs to the arrays or
  // features that contain the inputs, the labels and the sample weights. An array is identified by
  // its name in `file`, or by the path of an NPY file. The name "" stands for the only input, the
  // only output or, for sample weights, all outputs.
  std::map<std::string, std::string> inputs, targets, sample_weights;

  // tfrecord, jsonl
  std::vector<std::string> files;                 // also text: paths, or patterns as in a shell
  std::map<std::string, FeatureConfig> features;  // also csv
  OnDamaged on_damaged = OnDamaged::kFail;        // also images
  std::string cache_dir;  // text, too: for temporary files; "" for TMPDIR or /tmp

  std::optional<TokenizeConfig> tokenize;  // text, texts

  // images, texts
  std::string folder;                // contains a folder of files for each class
  std::vector<std::string> classes;  // the names of these folders; empty: all, sorted

  int64_t height = 256, width = 256, channels = 3;  // images
  ResizeMethod resize = ResizeMethod::kBilinear;
  bool crop_to_aspect_ratio = false;

  // synthetic: the range of an input, or of the labels of an output, by its name.
  std::map<std::string, std::vector<double>> ranges;

  // linear: y = x·weights + bias + noise·N(0,1). With one weight, the values of x are evenly spaced
  // from low to high, inclusive. With several weights, the values of x are drawn uniformly from
  // this range.
  std::vector<double> weights = {2};
  double bias = 10, noise = 0.33;

  double low = -1, high = 1;  // linear, synthetic: the range of floating-point values
  int64_t examples = 100;     // linear, synthetic

  // concatenate, mix, interleave, zip
  std::vector<SourceConfig> datasets;
  std::optional<double> weight;    // of one of the datasets of a mix; unset: 1
  MixStop stop = MixStop::kFirst;  // mix
  int64_t cycle_length = 16;       // interleave
  int64_t block_length = 1;        // interleave

  // Apply to the examples of every format, in this order: skip, take, cache, repeat.
  int64_t skip = 0;
  std::optional<int64_t> take;  // unset: all
  CacheKind cache = CacheKind::kNone;
  std::string cache_file;  // "": none
  int64_t repeat = 1;

  bool present() const { return format != DataFormat::kNone; }
};

// Specifies batches of examples of similar lengths (data::BucketByLength).
struct BucketConfig {
  std::vector<double> boundaries;       // whole numbers; empty: batches do not depend on length
  std::vector<double> batch_sizes;      // whole numbers, one more than boundaries; see BatchSize
  std::optional<int64_t> batch_tokens;  // instead of batch_sizes
  std::optional<double> padding;        // unset: that of the data, or 0

  bool present() const { return !boundaries.empty(); }
};

// Specifies how tokens are masked, for masked language models (data::MaskTokens).
inline constexpr double kMaskRate = 0.15;
struct MaskConfig {
  std::optional<int64_t> mask_token;       // an id; unset: tokens are not masked
  std::optional<int64_t> vocabulary_size;  // required with mask_token
  // Ids that are never masked, in addition to the padding of the data; whole numbers.
  std::vector<double> special_tokens;
  std::optional<double> rate;  // share of the tokens that may be masked; unset: kMaskRate

  bool present() const { return mask_token.has_value(); }
};

struct DataConfig {
  SourceConfig train, eval;
  LabelKind labels = LabelKind::kAuto;  // see ResolvedLabels
  bool shuffle = true;
  int64_t shuffle_buffer = 0;  // if above 0, examples are shuffled only within windows of this size
  ShardPolicy shard = ShardPolicy::kAuto;
  BucketConfig bucket_by_length;
  MaskConfig mask_tokens;
  std::shared_ptr<const Json> augment;  // a list of layers; null: none
  bool drop_remainder = false;
  int64_t prefetch = 4;  // prepared batches in memory
  int64_t threads = 0;   // to decode images; 0 for one per available processor
};

enum class StrategyKind {
  kAuto,
  kOneDevice,
  kMirrored,
  kMultiWorkerMirrored,
  kCentralStorage,
  kParameterServer
};
// The names of the strategies in the training file, in the order of the enum.
inline constexpr const char* kStrategyNames[] = {"auto",
                                                 "one_device",
                                                 "mirrored",
                                                 "multi_worker_mirrored",
                                                 "central_storage",
                                                 "parameter_server"};
// How the tasks' gradients are added. The enumerators are in the order of the names in the training
// file.
enum class CollectiveImplementation { kAuto, kRing, kNccl };
inline constexpr const char* kImplementationNames[] = {"auto", "ring", "nccl"};
// How tasks exchange gradients without parameter servers. The enumerators are in the order of the
// names in the training file.
enum class CollectiveTransport { kAuto, kTcp, kSharedMemory };
inline constexpr const char* kTransportNames[] = {"auto", "tcp", "shared_memory"};
// The type in which the tasks send gradients to each other. The enumerators are in the order of the
// names in the training file.
enum class Compression { kNone, kBFloat16 };
inline constexpr const char* kCompressionNames[] = {"none", "bfloat16"};
enum class OnFailure { kWait, kShrink, kRestart };
inline constexpr const char* kOnFailureNames[] = {"wait", "shrink", "restart"};
inline constexpr int64_t kMostDevices = 256;
enum class PsMode { kAsync, kSync };
enum class Placement { kRoundRobin, kBalanced };

inline constexpr int64_t kMostReplicas = 1024;  // the limit of max_replicas

struct StrategyConfig {
  // With kAuto, strategy::Select chooses a strategy suited to the cluster.
  StrategyKind kind = StrategyKind::kAuto;

  // The next nine fields apply to strategies that reduce gradients over devices.
  int64_t devices = 1;                    // number of devices of this task
  int64_t bytes_per_pack = 0;             // 0 for automatic
  std::optional<double> timeout_seconds;  // per collective operation; no limit if unset or 0
  CollectiveImplementation implementation = CollectiveImplementation::kAuto;
  CollectiveTransport transport = CollectiveTransport::kAuto;
  Compression compression = Compression::kNone;
  OnFailure on_failure = OnFailure::kWait;  // reaction of the other tasks to a lost task
  // The least and the most tasks that train. Both are set, or neither.
  std::optional<int64_t> min_replicas, max_replicas;
  // Returns whether tasks may join and leave while the job trains.
  bool IsElastic() const { return min_replicas != max_replicas; }

  // The remaining fields apply to parameter servers.
  PsMode mode = PsMode::kAsync;
  int64_t replicas_to_aggregate = 0;  // 0 for the number of training tasks
  Placement placement = Placement::kRoundRobin;
  int64_t shard_bytes = 32 << 20;        // larger variables are split across servers; 0 for never
  int64_t table_bytes = 4 << 20;         // larger tables are read by rows; 0 for never
  std::optional<int64_t> max_staleness;  // asynchronous; unlimited if unset
  // Synchronous: the other tasks wait for a worker for step_lease_factor times the median step
  // time, and for at least step_lease_secs. If the factor is 0, the other tasks wait without limit.
  double step_lease_factor = 10;
  double step_lease_secs = 60;
  double start_timeout_secs = 600;  // synchronous: how long the first step waits for all tasks
};

// Specifies the reaction to a loss or a gradient that is NaN or infinite.
enum class OnNonFinite { kFail, kSkip, kContinue };

// Specifies where a task computes.
enum class DeviceKind { kAuto, kCpu, kCuda };
inline constexpr const char* kDeviceNames[] = {"auto", "cpu", "cuda"};
inline std::string_view Name(DeviceKind kind) {
  return kDeviceNames[static_cast<int>(kind)];
}

// Specifies how a task uses its GPU.
struct GpuConfig {
  double memory_fraction = 1;  // of the GPU's memory
  bool allow_tf32 = false;     // in matrix products
};

struct EvalConfig {
  int64_t batch_size = 0;  // 0 for the training batch size
  int64_t steps = 0;       // batches per pass; 0 for all
  double start_delay_secs = 0;
  double throttle_secs = 0;
};

struct TrainingConfig {
  ModelConfig model;

  // The members up to `class_weight` apply to every output of the model, unless `outputs` has other
  // values for that output; see ForOutput.
  LossConfig loss;
  double loss_weight = 1;
  // Lists whose elements are names, or maps with a name and arguments. runtime/model parses the
  // lists. Null if there are none.
  std::shared_ptr<const Json> metrics, weighted_metrics;
  std::map<int64_t, double> class_weight;  // if empty, all classes weigh 1
  std::shared_ptr<const Json> outputs;     // {NAME: {loss: …, metrics: …}}; null if none

  OptimizerConfig optimizer;
  DataConfig data;
  // At most one of the two is set. Read them through BatchSize and GlobalBatchSize.
  std::optional<int64_t> batch_size, global_batch_size;
  // Training stops when the first of these limits is reached. 0 means no limit. At least one limit
  // must be above 0.
  int64_t epochs = 0;
  int64_t max_steps = 0;
  StrategyConfig strategy;
  DeviceKind device = DeviceKind::kAuto;
  GpuConfig gpu;
  OnNonFinite on_non_finite = OnNonFinite::kFail;
  EvalConfig eval;

  std::string model_dir;  // if "", nothing is saved
  // At most one of the two may be above 0. See CheckpointEvery.
  std::optional<double> save_checkpoints_secs;
  std::optional<int64_t> save_checkpoints_steps;
  double final_save_secs = 600;        // how long to retry the last save; 0 for one attempt
  int64_t keep_checkpoint_max = 5;     // 0 for all
  int64_t save_summary_steps = 100;    // 0 for never
  int64_t log_step_count_steps = 100;  // 0 for never

  int64_t seed = 0;
  int64_t threads = 0;  // 0 for one per processor that CPU affinity and the cgroup's quota allow
};

// Parses a training file. `what` names it in error messages. Does not check the rules that involve
// several keys: call Validate after the overrides.
StatusOr<TrainingConfig> ParseTrainingConfig(std::string_view text, std::string_view what);

// Sets one key ("data.train.images", "epochs") from a flag's `value`, which is parsed as YAML. The
// value may also be a list or a map: Override(config, "metrics", "[accuracy]"). If Override returns
// an error, the config is unchanged.
Status Override(TrainingConfig& config, std::string_view path, std::string_view value);

// Sets each key that has its default in `config` to its value in `keys`, a document like a training
// file. If SetOpenKeys returns an error, the config is unchanged.
Status SetOpenKeys(TrainingConfig& config, const Json& keys);

// The inputs that a program provides itself (train/job_inputs.h), so that the training file need
// not name them.
struct Provided {
  bool model = false;
  bool data = false;
};

// Checks the rules that involve several keys. A model, a loss, training data and a limit must be
// set, unless they are `provided`. A key must not be set if it has no effect because of another
// key.
Status Validate(const TrainingConfig& config, const Provided& provided = {});

// Specifies how often the chief saves a checkpoint. The default is every 600 s. 0 means off.
struct CheckpointTriggers {
  double secs = 600;
  int64_t steps = 0;
};
CheckpointTriggers CheckpointEvery(const TrainingConfig& config);

// Returns the number of examples per step of the training task `rank` of `training_tasks`:
// batch_size (32 if it is not set), or the task's part of global_batch_size. The parts differ by at
// most one. The first tasks have the larger parts, and the last parts may be 0. If `training_tasks`
// is 0, the number of tasks is unknown, and the result is the same as for a single task.
int64_t BatchSize(const TrainingConfig& config, int rank, int training_tasks);
// Returns the number of examples per step, summed over all training tasks.
int64_t GlobalBatchSize(const TrainingConfig& config, int training_tasks);

// Returns the number of examples per batch for each bucket of data.bucket_by_length. `longest` is
// the maximum length of the last bucket. If `together` is set, the tasks form batches together, and
// the numbers include the examples of all tasks; otherwise, they include only those of the training
// task `rank`. Like batch_size, batch_sizes and batch_tokens apply to each task.
std::vector<int64_t> BucketBatchSizes(const TrainingConfig& config, int64_t longest, int rank,
                                      int training_tasks, bool together);

// Returns the number of gradients per global step. `training_tasks` is the number of tasks that
// compute gradients, or 0 if it is unknown. Returns 0 if the result depends on an unknown number of
// tasks.
int64_t GradientsPerStep(const StrategyConfig& strategy, int training_tasks);

// Returns the sorted names of the outputs in the `outputs` section.
std::vector<std::string> NamedOutputs(const TrainingConfig& config);

// Returns the config of one output of the model: the keys of `outputs.NAME` replace the keys of the
// same name. If `outputs.NAME` has a loss, this loss replaces the whole `loss` section.
TrainingConfig ForOutput(const TrainingConfig& config, const std::string& name);

// Returns data.labels. For `auto`, returns the kind that the loss needs: class numbers for
// sparse_categorical_crossentropy and categorical_generalized_cross_entropy, one-hot rows for the
// other categorical losses, and plain values for all others. Never returns kAuto.
LabelKind ResolvedLabels(const TrainingConfig& config);

// Return a training file that represents `config`. The file contains defaults, but neither unset
// keys nor keys without effect. If `config` is valid, parsing the file yields the same value.
std::string PrintTrainingConfig(const TrainingConfig& config);  // YAML
Json TrainingConfigToJson(const TrainingConfig& config);

}  // namespace tfjob::config
