// Implements Validate, which checks the rules that involve several keys, and the functions whose
// results depend on several keys.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/config/keys.h"
#include "runtime/config/strategy_checks.h"
#include "runtime/config/token_keys.h"

namespace tfjob::config {
namespace {

constexpr int64_t kDefaultBatchSize = 32;
constexpr int64_t kMostImageValues = int64_t{1} << 28;

std::string List(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ");
}

// Rejects a key that has no effect because the key that selects it (when_key) has a different
// value. Examples are momentum with adagrad, and data.train.file with the format idx.
Status CheckSelected(const TrainingConfig& config, const TrainingConfig& defaults, const Key& key) {
  if (key.when_key.empty() || GetKey(config, key) == GetKey(defaults, key)) return OkStatus();
  const Json selector = SelectorOf(config, key);
  if (selector.is_null()) {
    // If `when_key` is a required key that is not set, the check for missing keys below reports the
    // error.
    if (FindKey(key.when_key)->unset_doc.empty()) return OkStatus();
    return InvalidArgument(key.path, ": belongs to ", key.when_key, " ", List(key.when_values),
                           ", but ", key.when_key, " is not set; set it, or remove ", key.path);
  }
  for (const std::string& value : key.when_values) {
    if (selector == value) return OkStatus();
  }
  const bool chosen = selector != GetKey(defaults, *FindKey(key.when_key));
  return InvalidArgument(
      key.path, ": belongs to ", key.when_key, " ", List(key.when_values), ", but ", key.when_key,
      " is ", selector.get_ref<const std::string&>(), "; ",
      chosen ? "remove one of the two" : StrCat("set ", key.when_key, ", or remove ", key.path));
}

Status Missing(std::string_view path, std::string_view expected) {
  return InvalidArgument(path, ": expected ", expected, ", but it is missing");
}

// Checks a CSV file without features, whose columns are numbers.
Status CheckNumbers(const SourceConfig& source, const std::string& at) {
  for (const auto& [key, names] :
       {std::pair("inputs", &source.inputs), std::pair("targets", &source.targets),
        std::pair("sample_weights", &source.sample_weights)}) {
    if (names->empty()) continue;
    return InvalidArgument(at, ".", key, ": belongs to ", at, ".features, which is not set; set ",
                           "it, or remove the key");
  }
  return OkStatus();
}

Status CheckColumns(const FeatureConfig& feature, const std::string& at) {
  const char* const unfit = !feature.decode_raw.empty() ? "decode_raw"
                            : feature.decode_image      ? "decode_image"
                            : feature.max_length        ? "max_length"
                                                        : nullptr;
  if (unfit != nullptr) {
    return InvalidArgument(at, ".", unfit, ": cannot be combined with format csv, whose fields ",
                           "are single values; remove it");
  }
  if (feature.tokenize && feature.columns.size() > 1) {
    return InvalidArgument(at, ".columns: expected one column for a text, got ",
                           feature.columns.size());
  }
  if (!feature.shape) return OkStatus();
  std::vector<int64_t> expected;
  if (!feature.columns.empty()) expected = {static_cast<int64_t>(feature.columns.size())};
  if (*feature.shape == expected) return OkStatus();
  return InvalidArgument(at, ".shape: expected [", absl::StrJoin(expected, ", "),
                         "], for the number of columns, got [", absl::StrJoin(*feature.shape, ", "),
                         "]; name several columns in columns");
}

// Checks a CSV file with features.
Status CheckNamedColumns(const SourceConfig& source, const std::string& at) {
  if (!source.label_column.empty()) {
    return InvalidArgument(at, ".label_column: cannot be combined with features; name the feature ",
                           "with the labels in targets instead");
  }
  if (!source.header) {
    return InvalidArgument(at, ".header: expected true, because features have the names in the ",
                           "first row, got false");
  }
  if (source.delimiter.find_first_of("\"\r\n") != std::string::npos)
    return InvalidArgument(at, ".delimiter: expected neither a quotation mark nor an end of line");
  for (const auto& [name, feature] : source.features)
    RETURN_IF_ERROR(CheckColumns(feature, StrCat(at, ".features.", name)));
  return OkStatus();
}

Status CheckCsv(const SourceConfig& source, const std::string& at) {
  if (source.file.empty()) return Missing(at + ".file", "a CSV file");
  if (source.delimiter.size() != 1) {
    return InvalidArgument(at, ".delimiter: expected one character, got \"", source.delimiter,
                           "\"");
  }
  return source.features.empty() ? CheckNumbers(source, at) : CheckNamedColumns(source, at);
}

// If `file` is not set, checks that every array is in its own file.
Status CheckNpz(const SourceConfig& source, const std::string& at) {
  if (!source.file.empty()) return OkStatus();
  const auto all_files = [](const std::map<std::string, std::string>& arrays) {
    return std::ranges::all_of(arrays,
                               [](const auto& array) { return array.second.ends_with(".npy"); });
  };
  if (!source.inputs.empty() && !source.targets.empty() && all_files(source.inputs) &&
      all_files(source.targets) && all_files(source.sample_weights))
    return OkStatus();
  return Missing(at + ".file", "an NPZ file, or an NPY file for each of the inputs and targets");
}

Status CheckRecords(const SourceConfig& source, const std::string& at, std::string_view files) {
  if (source.files.empty()) return Missing(at + ".files", StrCat("a list of ", files));
  for (const auto& [name, feature] : source.features) {
    if (feature.columns.empty()) continue;
    return InvalidArgument(at, ".features.", name, ".columns: belongs to format csv; remove it");
  }
  if (!source.features.empty()) return OkStatus();
  return Missing(at + ".features",
                 "the features to read, such as {x: {dtype: float32, shape: [784]}}");
}

Status CheckJsonLines(const SourceConfig& source, const std::string& at) {
  RETURN_IF_ERROR(CheckRecords(source, at, "files of JSON lines"));
  for (const auto& [name, feature] : source.features) {
    if (feature.decode_raw.empty() && !feature.decode_image) continue;
    return InvalidArgument(at, ".features.", name,
                           feature.decode_image ? ".decode_image" : ".decode_raw",
                           ": JSON has no strings of bytes; remove the key, and set dtype to "
                           "float32 or int64 for numbers, or add tokenize or vocabulary");
  }
  return OkStatus();
}

Status CheckText(const SourceConfig& source, const std::string& at) {
  if (source.files.empty()) return Missing(at + ".files", "a list of text files");
  if (!source.tokenize)
    return Missing(at + ".tokenize", "a tokenizer, such as {name: byte, max_length: 256}");
  const std::map<std::string, std::string> next = {{"", "next_token"}}, same = {{"", "same_token"}};
  if (source.targets.empty() || source.targets == next || source.targets == same) return OkStatus();
  return InvalidArgument(
      at, ".targets: expected next_token or same_token, since the tokens of a ",
      "line are the inputs; to read other labels, use JSON lines (format: ", "jsonl)");
}

Status CheckClassNames(const SourceConfig& source, const std::string& at) {
  for (auto name = source.classes.begin(); name != source.classes.end(); ++name) {
    if (std::find(source.classes.begin(), name, *name) != name)
      return InvalidArgument(at, ".classes: expected each class once, got ", *name, " twice");
  }
  return OkStatus();
}

Status CheckTexts(const SourceConfig& source, const std::string& at) {
  if (source.folder.empty())
    return Missing(at + ".folder", "a folder that contains a folder of text files for each class");
  if (!source.tokenize)
    return Missing(at + ".tokenize", "a tokenizer, such as {name: byte, max_length: 256}");
  return CheckClassNames(source, at);
}

Status CheckImages(const SourceConfig& source, const std::string& at) {
  if (source.folder.empty())
    return Missing(at + ".folder", "a folder that contains a folder of images for each class");
  if (source.channels == 2) return InvalidArgument(at, ".channels: expected 1, 3 or 4, got 2");
  if (source.height * source.width > kMostImageValues / source.channels) {
    return InvalidArgument(at, ".height: expected images of at most ", kMostImageValues,
                           " values (height × width × channels), got ", source.height, " × ",
                           source.width, " × ", source.channels);
  }
  return CheckClassNames(source, at);
}

Status CheckSource(const SourceConfig& source, const std::string& at);

// Checks the weight of a dataset. `of_mix` means that the dataset belongs to a mix.
Status CheckWeight(const SourceConfig& source, const std::string& at, bool of_mix) {
  if (!source.weight) return OkStatus();
  if (!of_mix) {
    return InvalidArgument(at, ".weight: belongs to one of the datasets of a mix, which this ",
                           "dataset is not; remove it");
  }
  if (std::isfinite(*source.weight) && *source.weight > 0) return OkStatus();
  return InvalidArgument(at, ".weight: expected a finite number above 0, got ", *source.weight,
                         "; remove a dataset that is not used");
}

// Checks a dataset of a zip, which must name the inputs and outputs that it provides.
Status CheckZipped(const SourceConfig& source, const std::string& at) {
  const bool joined = !source.datasets.empty();
  const bool named = source.format == DataFormat::kNpz || source.format == DataFormat::kTfRecord ||
                     source.format == DataFormat::kJsonLines ||
                     (source.format == DataFormat::kCsv && !source.features.empty());
  if (!joined && !named) {
    return InvalidArgument(at, ".format: expected npz, tfrecord, jsonl or csv with features for ",
                           "datasets that are zipped, since only these name the inputs and ",
                           "targets they provide");
  }
  if (!joined && source.inputs.empty() && source.targets.empty() && source.sample_weights.empty())
    return Missing(at + ".inputs", "the inputs or targets that this dataset provides");
  for (size_t i = 0; i < source.datasets.size(); ++i)
    RETURN_IF_ERROR(CheckZipped(source.datasets[i], StrCat(at, ".datasets[", i, "]")));
  return OkStatus();
}

// Replaces the keys of data.train in the message with those of the dataset `at`.
Status Renamed(const Status& error, const std::string& at) {
  if (error.ok()) return error;
  return {error.code(),
          absl::StrReplaceAll(std::string(Message(error)), {{"data.train.", at + "."}})};
}

Status CheckCache(const SourceConfig& source, const std::string& at) {
  if (source.cache_file.empty() || source.cache == CacheKind::kNone) return OkStatus();
  return InvalidArgument(at, ".cache_file: expected either cache: memory or cache_file, got both; ",
                         "remove one of the two");
}

Status CheckDatasets(const SourceConfig& source, const std::string& at) {
  if (source.datasets.empty()) return Missing(at + ".datasets", "a list of datasets");
  const TrainingConfig defaults;
  for (size_t i = 0; i < source.datasets.size(); ++i) {
    const std::string below = StrCat(at, ".datasets[", i, "]");
    TrainingConfig own;
    own.data.train = source.datasets[i];
    for (const Key& key : Keys()) {
      if (key.path.starts_with("data.train."))
        RETURN_IF_ERROR(Renamed(CheckSelected(own, defaults, key), below));
    }
    RETURN_IF_ERROR(CheckWeight(source.datasets[i], below, source.format == DataFormat::kMix));
    RETURN_IF_ERROR(CheckSource(source.datasets[i], below));
    if (source.format == DataFormat::kZip) RETURN_IF_ERROR(CheckZipped(source.datasets[i], below));
  }
  return OkStatus();
}

Status CheckSource(const SourceConfig& source, const std::string& at) {
  RETURN_IF_ERROR(CheckCache(source, at));
  switch (source.format) {
    case DataFormat::kIdx:
      if (source.images.empty()) return Missing(at + ".images", "an IDX file of images");
      if (source.labels.empty()) return Missing(at + ".labels", "an IDX file of labels");
      return OkStatus();
    case DataFormat::kCsv:
      return CheckCsv(source, at);
    case DataFormat::kNpz:
      return CheckNpz(source, at);
    case DataFormat::kTfRecord:
      return CheckRecords(source, at, "TFRecord files");
    case DataFormat::kJsonLines:
      return CheckJsonLines(source, at);
    case DataFormat::kImages:
      return CheckImages(source, at);
    case DataFormat::kConcatenate:
    case DataFormat::kMix:
    case DataFormat::kInterleave:
    case DataFormat::kZip:
      return CheckDatasets(source, at);
    case DataFormat::kText:
      return CheckText(source, at);
    case DataFormat::kTexts:
      return CheckTexts(source, at);
    case DataFormat::kLinear:
    case DataFormat::kSynthetic:
      if (source.low <= source.high) return OkStatus();
      return InvalidArgument(at, ".high: expected at least low (", source.low, "), got ",
                             source.high);
    case DataFormat::kNone:
      break;
  }
  return Missing(at + ".format",
                 "one of idx, csv, npz, tfrecord, jsonl, images, text, texts, linear, synthetic, "
                 "concatenate, mix, interleave, zip");
}

// Returns whether keys of data.eval are set although its format is not.
bool HalfGiven(const TrainingConfig& config, const TrainingConfig& defaults) {
  if (config.data.eval.present()) return false;
  for (const Key& key : Keys()) {
    const bool below = key.path.compare(0, 10, "data.eval.") == 0;
    if (below && GetKey(config, key) != GetKey(defaults, key)) return true;
  }
  return false;
}

Status CheckModel(const ModelConfig& model, bool provided) {
  std::vector<std::string> set;
  if (model.layers != nullptr) set.emplace_back("layers");
  if (!model.keras_json.empty()) set.emplace_back("keras_json");
  if (!model.file.empty()) set.emplace_back("file");
  if (set.empty() && !provided) return Missing("model", "layers, keras_json or file");
  if (set.size() > 1) {
    return InvalidArgument("model: expected only one of layers, keras_json and file, got ",
                           absl::StrJoin(set, " and "), "; keep one of them");
  }
  if (!model.weights.empty()) return OkStatus();
  const char* without = !model.weights_skip.empty()      ? "model.weights_skip"
                        : !model.optimizer_state.empty() ? "model.optimizer_state"
                                                         : nullptr;
  if (without == nullptr) return OkStatus();
  return InvalidArgument(
      without, ": belongs to model.weights, which is not set; set it, or remove ", without);
}

Status CheckEnd(const TrainingConfig& config) {
  if (config.epochs > 0 || config.max_steps > 0) return OkStatus();
  return InvalidArgument(
      "epochs, max_steps: expected at least one of them above 0, or the training would never end");
}

Status CheckCheckpoints(const TrainingConfig& config) {
  if (config.save_checkpoints_secs.value_or(0) > 0 &&
      config.save_checkpoints_steps.value_or(0) > 0) {
    return InvalidArgument(
        "save_checkpoints_steps: expected either save_checkpoints_secs or save_checkpoints_steps, "
        "got both; set one to 0");
  }
  return OkStatus();
}

Status CheckClipping(const TrainingConfig& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  std::vector<std::string> set;
  for (const auto& [name, value] : {std::pair{"clipvalue", optimizer.clipvalue},
                                    {"clipnorm", optimizer.clipnorm},
                                    {"global_clipnorm", optimizer.global_clipnorm}}) {
    if (!value) continue;
    set.emplace_back(name);
    if (!std::isfinite(*value) || *value <= 0) {
      return InvalidArgument("optimizer.", name, ": expected a finite number above 0, got ", *value,
                             "; to clip nothing, remove the key");
    }
  }
  if (set.size() > 1) {
    return InvalidArgument("optimizer: expected only one of clipvalue, clipnorm and ",
                           "global_clipnorm, got ", absl::StrJoin(set, " and "),
                           "; keep one of them");
  }
  return OkStatus();
}

Status CheckAveraging(const OptimizerConfig& optimizer) {
  const bool averages = optimizer.use_ema.value_or(false);
  if (averages || (!optimizer.ema_momentum && !optimizer.ema_overwrite_frequency))
    return OkStatus();
  return InvalidArgument("optimizer.",
                         optimizer.ema_momentum ? "ema_momentum" : "ema_overwrite_frequency",
                         ": belongs to optimizer.use_ema true, but it is not set; set it, or "
                         "remove one of the two");
}

Status CheckBatchSize(const TrainingConfig& config) {
  if (!config.batch_size || !config.global_batch_size) return OkStatus();
  return InvalidArgument(
      "global_batch_size: expected either batch_size or global_batch_size, got both; remove one of "
      "the two");
}

Status CheckLossAxes(const LossConfig& loss, const std::string& at) {
  for (const double axis : loss.axis) {
    if (axis != std::trunc(axis) || std::abs(axis) > 100)
      return InvalidArgument(at, ".axis: expected the numbers of axes, such as [1, 2], got ", axis);
  }
  return OkStatus();
}

Status CheckOutputs(const TrainingConfig& config, const TrainingConfig& defaults) {
  for (const std::string& name : NamedOutputs(config)) {
    const TrainingConfig own = ForOutput(config, name);
    const std::string at = StrCat("outputs.", name);
    if (own.loss.name.empty()) return Missing(at + ".loss", List(FindKey("loss.name")->choices));
    for (const Key& key : Keys()) {
      if (key.per_output) RETURN_IF_ERROR(Annotate(CheckSelected(own, defaults, key), at));
    }
    RETURN_IF_ERROR(CheckLossAxes(own.loss, at + ".loss"));
  }
  return OkStatus();
}

Status CheckShuffle(const DataConfig& data) {
  if (data.shuffle || data.shuffle_buffer == 0) return OkStatus();
  return InvalidArgument("data.shuffle_buffer: belongs to data.shuffle true, but data.shuffle is ",
                         "false; remove one of the two");
}

Status CheckTrainingDataGiven(const TrainingConfig& config) {
  if (config.data.train.present() || !GetKey(config, *FindKey("data.train.images")).is_null() ||
      !config.data.train.file.empty() || !config.data.train.files.empty() ||
      !config.data.train.folder.empty())
    return OkStatus();
  return Missing("data.train",
                 "the training data, such as {format: idx, images: FILE, labels: FILE}");
}

}  // namespace

Status Validate(const TrainingConfig& config, const Provided& provided) {
  const TrainingConfig defaults;
  RETURN_IF_ERROR(CheckModel(config.model, provided.model));
  if (config.loss.name.empty() && config.outputs == nullptr)
    return Missing("loss", List(FindKey("loss.name")->choices));
  if (!provided.data) RETURN_IF_ERROR(CheckTrainingDataGiven(config));
  for (const Key& key : Keys()) RETURN_IF_ERROR(CheckSelected(config, defaults, key));
  RETURN_IF_ERROR(CheckOutputs(config, defaults));
  RETURN_IF_ERROR(CheckLossAxes(config.loss, "loss"));
  RETURN_IF_ERROR(CheckWeight(config.data.train, "data.train", /*of_mix=*/false));
  RETURN_IF_ERROR(CheckWeight(config.data.eval, "data.eval", /*of_mix=*/false));
  if (!provided.data || config.data.train.present())
    RETURN_IF_ERROR(CheckSource(config.data.train, "data.train"));
  if (config.data.eval.present() || HalfGiven(config, defaults)) {
    RETURN_IF_ERROR(CheckSource(config.data.eval, "data.eval"));
  }
  RETURN_IF_ERROR(CheckShuffle(config.data));
  RETURN_IF_ERROR(CheckBuckets(config));
  RETURN_IF_ERROR(CheckMasking(config.data));
  RETURN_IF_ERROR(CheckAugment(config.data));
  RETURN_IF_ERROR(CheckClipping(config));
  RETURN_IF_ERROR(CheckAveraging(config.optimizer));
  RETURN_IF_ERROR(CheckStrategy(config.strategy));
  RETURN_IF_ERROR(CheckBatchSize(config));
  RETURN_IF_ERROR(CheckElastic(config));
  RETURN_IF_ERROR(CheckEnd(config));
  return CheckCheckpoints(config);
}

CheckpointTriggers CheckpointEvery(const TrainingConfig& config) {
  const int64_t steps = config.save_checkpoints_steps.value_or(0);
  const double otherwise = steps > 0 ? 0 : CheckpointTriggers().secs;
  return {.secs = config.save_checkpoints_secs.value_or(otherwise), .steps = steps};
}

int64_t BatchSize(const TrainingConfig& config, int rank, int training_tasks) {
  if (!config.global_batch_size) return config.batch_size.value_or(kDefaultBatchSize);
  const int64_t tasks = std::max(training_tasks, 1);
  return *config.global_batch_size / tasks + (rank < *config.global_batch_size % tasks ? 1 : 0);
}

int64_t GlobalBatchSize(const TrainingConfig& config, int training_tasks) {
  if (config.global_batch_size) return *config.global_batch_size;
  return config.batch_size.value_or(kDefaultBatchSize) * std::max(training_tasks, 1);
}

int64_t GradientsPerStep(const StrategyConfig& strategy, int training_tasks) {
  if (strategy.mode != PsMode::kSync) return 1;
  return strategy.replicas_to_aggregate > 0 ? strategy.replicas_to_aggregate : training_tasks;
}

LabelKind ResolvedLabels(const TrainingConfig& config) {
  if (config.data.labels != LabelKind::kAuto) return config.data.labels;
  for (const char* classes : {"sparse_categorical_crossentropy",
                              "categorical_generalized_cross_entropy", "circle", "ctc"}) {
    if (config.loss.name == classes) return LabelKind::kClass;
  }
  for (const char* rows :
       {"categorical_crossentropy", "clipped_crossentropy", "categorical_focal_crossentropy",
        "categorical_hinge", "kl_divergence", "cosine_similarity"}) {
    if (config.loss.name == rows) return LabelKind::kOneHot;
  }
  return LabelKind::kValue;
}

}  // namespace tfjob::config
