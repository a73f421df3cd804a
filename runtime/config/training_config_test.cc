#include "runtime/config/training_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob::config {
namespace {

constexpr char kSmall[] = R"(
model:
  layers:
    - Dense: {units: 1}
loss: mean_squared_error
optimizer: adagrad
data:
  train: {format: linear}
max_steps: 10
)";

constexpr char kFull[] = R"(
model:
  layers:
    - Flatten:
    - Dense: {units: 128, activation: relu}
    - Dense: {units: 10}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
metrics: [accuracy]
optimizer: {name: adam, learning_rate: 0.01, beta_1: 0.8}
data:
  train: {format: idx, images: a.gz, labels: b.gz, scale: 1/255}
  eval: {format: csv, file: c.csv, label_column: -1, header: false}
  shuffle: false
batch_size: 100
epochs: 5
max_steps: 1000
strategy: {name: parameter_server, mode: sync, replicas_to_aggregate: 2, placement: balanced, shard_bytes: 4Mi}
eval: {batch_size: 1000, start_delay_secs: 1.5}
model_dir: /tmp/m
save_checkpoints_steps: 50
keep_checkpoint_max: 3
seed: 7
threads: 2
)";

std::string ParseError(std::string_view text) {
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(text, "t.yaml");
  return config.ok() ? "accepted" : std::string(Message(config.status()));
}

// Parses kSmall, applies the overrides and validates the result. Returns the error, or "accepted".
std::string Checked(std::vector<std::pair<std::string, std::string>> overrides) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kSmall, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  for (const auto& [path, value] : overrides) {
    const Status status = Override(*config, path, value);
    if (!status.ok()) return std::string(Message(status));
  }
  const Status valid = Validate(*config);
  return valid.ok() ? "accepted" : std::string(Message(valid));
}

TEST(TrainingConfig, ReadsEveryKindOfKey) {
  const StatusOr<TrainingConfig> parsed = ParseTrainingConfig(kFull, "t.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const TrainingConfig& config = *parsed;
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  ASSERT_NE(config.model.layers, nullptr);
  EXPECT_EQ(config.model.layers->size(), 3u);
  EXPECT_EQ(config.loss.name, "sparse_categorical_crossentropy");
  EXPECT_TRUE(config.loss.from_logits);
  EXPECT_EQ(*config.metrics, Json::array({"accuracy"}));
  EXPECT_EQ(config.optimizer.name, "adam");
  EXPECT_EQ(config.optimizer.learning_rate, 0.01);
  EXPECT_EQ(config.optimizer.beta_1, 0.8);
  EXPECT_EQ(config.optimizer.beta_2, std::nullopt);
  EXPECT_EQ(config.data.train.format, DataFormat::kIdx);
  EXPECT_EQ(config.data.train.images, "a.gz");
  EXPECT_DOUBLE_EQ(config.data.train.scale, 1.0 / 255);
  EXPECT_EQ(config.data.eval.format, DataFormat::kCsv);
  EXPECT_EQ(config.data.eval.label_column, "-1");
  EXPECT_FALSE(config.data.eval.header);
  EXPECT_FALSE(config.data.shuffle);
  EXPECT_EQ(config.batch_size, 100);
  EXPECT_EQ(config.epochs, 5);
  EXPECT_EQ(config.max_steps, 1000);
  EXPECT_EQ(config.strategy.kind, StrategyKind::kParameterServer);
  EXPECT_EQ(config.strategy.mode, PsMode::kSync);
  EXPECT_EQ(config.strategy.replicas_to_aggregate, 2);
  EXPECT_EQ(config.strategy.placement, Placement::kBalanced);
  EXPECT_EQ(config.strategy.shard_bytes, 4 << 20);
  EXPECT_EQ(config.eval.batch_size, 1000);
  EXPECT_EQ(config.eval.start_delay_secs, 1.5);
  EXPECT_EQ(config.save_checkpoints_steps, 50);
  EXPECT_EQ(config.keep_checkpoint_max, 3);
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.threads, 2);
}

TEST(TrainingConfig, HasTheDocumentedDefaults) {
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(kSmall, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(CheckpointEvery(*config).secs, 600);
  EXPECT_EQ(CheckpointEvery(*config).steps, 0);
  EXPECT_EQ(config->keep_checkpoint_max, 5);
  EXPECT_EQ(config->save_summary_steps, 100);
  EXPECT_EQ(config->log_step_count_steps, 100);
  EXPECT_EQ(config->loss.name, "mean_squared_error");
  EXPECT_EQ(config->optimizer.name, "adagrad");
  EXPECT_EQ(config->strategy.kind, StrategyKind::kAuto);
  EXPECT_EQ(ResolvedLabels(*config), LabelKind::kValue);
}

TEST(TrainingConfig, PrintsAFileThatReadsAsTheSameValue) {
  for (const char* text : {kSmall, kFull}) {
    const StatusOr<TrainingConfig> first = ParseTrainingConfig(text, "t.yaml");
    ASSERT_TRUE(first.ok()) << first.status();
    const std::string printed = PrintTrainingConfig(*first);
    const StatusOr<TrainingConfig> second = ParseTrainingConfig(printed, "printed");
    ASSERT_TRUE(second.ok()) << second.status() << printed;
    EXPECT_TRUE(Validate(*second).ok()) << Validate(*second) << printed;
    EXPECT_EQ(TrainingConfigToJson(*first), TrainingConfigToJson(*second));
    EXPECT_NE(printed.find("keep_checkpoint_max: "), std::string::npos);
  }
}

TEST(TrainingConfig, UnknownKeysAreErrorsWithASuggestion) {
  EXPECT_EQ(ParseError("batchsize: 3"),
            "t.yaml: batchsize: unknown key; did you mean \"batch_size\"?");
  EXPECT_EQ(ParseError("optimizer: {name: sgd, learning_rte: 1}"),
            "t.yaml: optimizer.learning_rte: unknown key; did you mean \"learning_rate\"?");
  EXPECT_EQ(ParseError("mode: sync"), "t.yaml: mode: unknown key; did you mean \"strategy.mode\"?");
  EXPECT_EQ(ParseError("data: {train: {format: idx, imges: x}}"),
            "t.yaml: data.train.imges: unknown key; did you mean \"images\"?");
  EXPECT_EQ(
      ParseError("model: {zzz: 1}"),
      "t.yaml: model.zzz: unknown key; known: layers, keras_json, file, weights, optimizer_state, "
      "weights_skip, frozen, recompute, dtype_policy");
  EXPECT_EQ(Checked({{"epoch", "3"}}), "epoch: unknown key; did you mean \"epochs\"?");
}

TEST(TrainingConfig, WrongTypesAndRangesNamePathExpectationAndValue) {
  EXPECT_EQ(ParseError("batch_size: many"),
            "t.yaml: batch_size: expected an integer, got \"many\"");
  EXPECT_EQ(ParseError("batch_size: 1.5"), "t.yaml: batch_size: expected an integer, got 1.5");
  EXPECT_EQ(ParseError("batch_size: 0"),
            "t.yaml: batch_size: expected a value from 1 to 16777216, got 0");
  EXPECT_EQ(ParseError("seed: -1"), "t.yaml: seed: expected a value of at least 0, got -1");
  EXPECT_EQ(ParseError("optimizer: {beta_1: 1.5}"),
            "t.yaml: optimizer.beta_1: expected a value from 0 to 1, got 1.5");
  EXPECT_EQ(ParseError("optimizer: adm"),
            "t.yaml: optimizer: expected one of sgd, adagrad, adam, rmsprop, adamw, nadam, adamax, "
            "adadelta, ftrl, lion, got \"adm\"; did you mean \"adam\"?");
  EXPECT_EQ(
      ParseError("strategy: {mode: snyc}"),
      "t.yaml: strategy.mode: expected one of async, sync, got \"snyc\"; did you mean \"sync\"?");
  EXPECT_EQ(ParseError("strategy: {shard_bytes: 4MB}"),
            "t.yaml: strategy.shard_bytes: expected a number of bytes, or one with Ki, Mi or Gi, "
            "such as \"32Mi\", got "
            "\"4MB\"");
  EXPECT_EQ(
      ParseError("data: {train: {scale: 1/0}}"),
      "t.yaml: data.train.scale: expected a number, or a fraction such as \"1/255\", got \"1/0\"");
  for (const std::string fraction : {"0x10/2", "inf/2", "nan/2", "+-1/2", "1/ 2"}) {
    EXPECT_EQ(
        ParseError("data: {train: {scale: '" + fraction + "'}}"),
        "t.yaml: data.train.scale: expected a number, or a fraction such as \"1/255\", got \"" +
            fraction + "\"");
  }
  const std::string metric = ParseError("metrics: [acuracy]");
  EXPECT_TRUE(metric.starts_with("t.yaml: metrics[0]: expected one of accuracy, ")) << metric;
  const std::string named = ParseError("metrics: [accuracy, {name: acuracy, k: 3}]");
  EXPECT_TRUE(named.starts_with("t.yaml: metrics[1].name: expected one of accuracy, ")) << named;
  EXPECT_TRUE(metric.ends_with("got \"acuracy\"; did you mean \"accuracy\"?")) << metric;
  EXPECT_EQ(ParseError("data: 3"), "t.yaml: data: expected a map of keys, got 3");
  EXPECT_EQ(ParseError("loss: 3"), "t.yaml: loss: expected a name, or a map of keys, got 3");
  EXPECT_EQ(ParseError("model: {layers: []}"),
            "t.yaml: model.layers: expected a list of layers, such as [{Dense: {units: 10}}], got "
            "a list");
}

TEST(TrainingConfig, RefusesAScheduleWithoutAName) {
  EXPECT_EQ(Checked({{"optimizer.learning_rate_schedule.decay_steps", "10"}}),
            "optimizer.learning_rate_schedule.decay_steps: belongs to "
            "optimizer.learning_rate_schedule.name exponential_decay, inverse_time_decay, "
            "polynomial_decay, cosine_decay, but optimizer.learning_rate_schedule.name is not set; "
            "set it, or remove optimizer.learning_rate_schedule.decay_steps");
}

TEST(TrainingConfig, RefusesTextThatIsNotOneMap) {
  EXPECT_EQ(ParseError(""), "t.yaml: expected one YAML document, got 0");
  EXPECT_EQ(ParseError("a: 1\n---\na: 2\n"), "t.yaml: expected one YAML document, got 2");
  EXPECT_EQ(ParseError("- 1"), "t.yaml: the document: expected a map of keys, got a list");
  EXPECT_NE(ParseError("a: [").find("t.yaml"), std::string::npos);
}

TEST(TrainingConfig, OverridesReplaceKeysAndLeaveTheRest) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kFull, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(Override(*config, "batch_size", "7").ok());
  EXPECT_TRUE(Override(*config, "strategy.mode", "async").ok());
  EXPECT_TRUE(Override(*config, "metrics", "[accuracy, mean_squared_error]").ok());
  EXPECT_TRUE(Override(*config, "optimizer", "sgd").ok());
  EXPECT_TRUE(Override(*config, "data.eval", "{format: linear, weights: [1, 2]}").ok());
  EXPECT_EQ(config->batch_size, 7);
  EXPECT_EQ(config->strategy.mode, PsMode::kAsync);
  EXPECT_EQ(config->strategy.replicas_to_aggregate, 2);
  EXPECT_EQ(config->metrics->size(), 2u);
  EXPECT_EQ(config->optimizer.name, "sgd");
  EXPECT_EQ(config->data.eval.weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(Message(Override(*config, "batch_size", "x")),
            "batch_size: expected an integer, got \"x\"");
  EXPECT_EQ(Message(Override(*config, "batch_size", "")),
            "batch_size: expected a value, got nothing");
  EXPECT_FALSE(Override(*config, "data.eval", "{bias: 3, low: x}").ok());
  EXPECT_EQ(config->batch_size, 7);
  EXPECT_EQ(config->data.eval.bias, 10) << "a refused override leaves nothing behind";
}

TEST(TrainingConfig, MissingPartsAreNamed) {
  EXPECT_EQ(Checked({}), "accepted");
  const auto missing = [](std::string_view text) {
    const StatusOr<TrainingConfig> config = ParseTrainingConfig(text, "t.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::string(Message(Validate(*config)));
  };
  EXPECT_EQ(missing("seed: 1"), "model: expected layers, keras_json or file, but it is missing");
  EXPECT_EQ(missing("model: {keras_json: m.json}").substr(0, 14), "loss: expected");
  EXPECT_EQ(missing("{model: {keras_json: m.json}, loss: mean_squared_error}"),
            "data.train: expected the training data, such as {format: idx, images: FILE, labels: "
            "FILE}, but it is "
            "missing");
  EXPECT_EQ(
      Checked({{"max_steps", "0"}}),
      "epochs, max_steps: expected at least one of them above 0, or the training would never end");
  EXPECT_EQ(Checked({{"data.train.format", "idx"}}),
            "data.train.images: expected an IDX file of images, but it is missing");
  EXPECT_EQ(Checked({{"data.train.format", "csv"}}),
            "data.train.file: expected a CSV file, but it is missing");
  EXPECT_EQ(
      Checked({{"data.eval.scale", "2"}}),
      "data.eval.format: expected one of idx, csv, npz, tfrecord, jsonl, images, text, texts, "
      "linear, synthetic, concatenate, mix, interleave, zip, but it is missing");
}

TEST(TrainingConfig, KeysThatContradictEachOtherAreErrors) {
  EXPECT_EQ(Checked({{"optimizer.momentum", "0.9"}}),
            "optimizer.momentum: belongs to optimizer.name sgd, rmsprop, but optimizer.name is "
            "adagrad; remove one of "
            "the two");
  EXPECT_EQ(Checked({{"data.train.images", "a.gz"}}),
            "data.train.images: belongs to data.train.format idx, but data.train.format is linear; "
            "remove one of the "
            "two");
  EXPECT_EQ(Checked({{"loss.from_logits", "true"}}).substr(0, 28), "loss.from_logits: belongs to");
  EXPECT_EQ(Checked({{"loss.name", "dice"}, {"loss.axis", "[1, 1.5]"}}),
            "loss.axis: expected the numbers of axes, such as [1, 2], got 1.5");
  EXPECT_EQ(Checked({{"loss.name", "dice"}, {"loss.axis", "[1, -1]"}}), "accepted");
  EXPECT_EQ(Checked({{"model.keras_json", "m.json"}}),
            "model: expected only one of layers, keras_json and file, got layers and keras_json; "
            "keep one of them");
  EXPECT_EQ(Checked({{"model.weights_skip", "[head/*]"}}),
            "model.weights_skip: belongs to model.weights, which is not set; set it, or remove "
            "model.weights_skip");
  EXPECT_EQ(Checked({{"model.weights_skip", "[head/*]"}, {"model.weights", "w.h5"}}), "accepted");
  EXPECT_EQ(
      Checked({{"save_checkpoints_steps", "5"}, {"save_checkpoints_secs", "5"}}).substr(0, 31),
      "save_checkpoints_steps: expecte");
  EXPECT_EQ(Checked({{"data.train.low", "2"}}),
            "data.train.high: expected at least low (2), got 1");
  EXPECT_EQ(Checked({{"data.train", "{format: csv, file: a, delimiter: ab}"}}),
            "data.train.delimiter: expected one character, got \"ab\"");
}

TEST(TrainingConfig, AnOutputHasKeysOfItsOwn) {
  TrainingConfig config = *ParseTrainingConfig(
      "{loss: {name: categorical_crossentropy, from_logits: true}, metrics: [accuracy], outputs: "
      "{a: {loss: mean_squared_error, loss_weight: 0.5}, b: {class_weight: {0: 1, 3: 2.5}}}}",
      "t.yaml");
  EXPECT_EQ(NamedOutputs(config), std::vector<std::string>({"a", "b"}));
  const TrainingConfig a = ForOutput(config, "a"), b = ForOutput(config, "b");
  EXPECT_EQ(a.loss.name, "mean_squared_error");
  EXPECT_FALSE(a.loss.from_logits) << "belongs to the other loss";
  EXPECT_EQ(a.loss_weight, 0.5);
  EXPECT_EQ(*a.metrics, Json::array({"accuracy"}));
  EXPECT_TRUE(b.loss.from_logits);
  EXPECT_EQ(b.class_weight, (std::map<int64_t, double>{{0, 1}, {3, 2.5}}));
  EXPECT_EQ(ForOutput(config, "c").loss.name, "categorical_crossentropy");

  ASSERT_EQ(Override(config, "outputs.a.loss.reduction", "sum"), OkStatus());
  ASSERT_EQ(Override(config, "outputs.c.loss_weight", "3"), OkStatus());
  EXPECT_EQ(ForOutput(config, "a").loss.reduction, Reduction::kSum);
  EXPECT_EQ(ForOutput(config, "a").loss.name, "mean_squared_error");
  EXPECT_EQ(ForOutput(config, "c").loss_weight, 3);
  const StatusOr<TrainingConfig> again =
      ParseTrainingConfig(PrintTrainingConfig(config), "printed");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TrainingConfigToJson(*again), TrainingConfigToJson(config));
}

TEST(TrainingConfig, ErrorsOfOutputsNameThePath) {
  EXPECT_EQ(ParseError("outputs: {a: {los: x}}"),
            "t.yaml: outputs.a.los: unknown key; did you mean \"loss\"?");
  EXPECT_EQ(ParseError("outputs: {a: {batch_size: 3}}").substr(0, 41),
            "t.yaml: outputs.a.batch_size: unknown key");
  EXPECT_EQ(ParseError("outputs: {a: {loss: {name: mse}}}").substr(0, 44),
            "t.yaml: outputs.a.loss.name: expected one of");
  EXPECT_EQ(ParseError("data: {train: {targets: y}}"),
            "t.yaml: data.train.targets: expected the name of an array, or a map of names to "
            "arrays (write \"y\" in quotes, because YAML reads y as true), got true");
  EXPECT_EQ(ParseError("outputs: []"),
            "t.yaml: outputs: expected a map of outputs, such as {NAME: {loss: "
            "mean_squared_error}}, got a list");
  EXPECT_EQ(ParseError("class_weight: {x: 1}"),
            "t.yaml: class_weight.x: expected a class number of at least 0");
  EXPECT_EQ(ParseError("class_weight: {0: -1}"),
            "t.yaml: class_weight.0: expected a finite weight of at least 0, got -1");
  EXPECT_EQ(ParseError("data: {train: {ranges: {a: [2, 1]}}}"),
            "t.yaml: data.train.ranges.a: expected two finite numbers [low, high], of which low is "
            "not above high, got a list");
  EXPECT_EQ(
      Checked({{"outputs.a.loss", "{name: mean_squared_error, from_logits: true}"}}).substr(0, 39),
      "outputs.a: loss.from_logits: belongs to");
}

TEST(TrainingConfig, ArraysNeedAFile) {
  EXPECT_EQ(Checked({{"data.train", "{format: npz, inputs: x.npy, targets: y.npy}"}}), "accepted");
  EXPECT_EQ(Checked({{"data.train", "{format: npz, inputs: x.npy, targets: z}"}}),
            "data.train.file: expected an NPZ file, or an NPY file for each of the inputs and "
            "targets, but it is missing");
}

TEST(TrainingConfig, AProgramMayProvideTheModelAndTheData) {
  TrainingConfig config;
  config.loss.name = "mean_squared_error";
  config.epochs = 1;
  const auto error = [&](const Provided& provided) {
    return std::string(Message(Validate(config, provided)));
  };
  EXPECT_EQ(error({.model = true, .data = true}), "");
  EXPECT_EQ(error({.model = true}),
            "data.train: expected the training data, such as {format: idx, images: FILE, labels: "
            "FILE}, but it is missing");
  EXPECT_EQ(error({.data = true}), "model: expected layers, keras_json or file, but it is missing");
  config.data.train.format = DataFormat::kCsv;
  EXPECT_EQ(error({.model = true, .data = true}),
            "data.train.file: expected a CSV file, but it is missing");
}

TEST(TrainingConfig, ClippingIsOfOneKind) {
  EXPECT_EQ(Checked({{"optimizer.clipnorm", "1.5"}}), "accepted");
  EXPECT_EQ(
      Checked({{"optimizer.clipnorm", "1"}, {"optimizer.clipvalue", "1"}}),
      "optimizer: expected only one of clipvalue, clipnorm and global_clipnorm, got clipvalue "
      "and clipnorm; keep one of them");
  EXPECT_EQ(Checked({{"optimizer.global_clipnorm", "0"}}),
            "optimizer.global_clipnorm: expected a finite number above 0, got 0; to clip nothing, "
            "remove the key");
  EXPECT_EQ(Checked({{"optimizer.clipvalue", "-1"}}),
            "optimizer.clipvalue: expected a value of at least 0, got -1");
  EXPECT_EQ(Checked({{"optimizer.clipvalue", "1"}, {"strategy.mode", "sync"}}), "accepted");
}

TEST(TrainingConfig, OnlyAsynchronousGradientsAreStale) {
  EXPECT_EQ(Checked({{"strategy.max_staleness", "0"}}), "accepted");
  EXPECT_EQ(Checked({{"strategy.max_staleness", "-1"}}),
            "strategy.max_staleness: expected a value of at least 0, got -1");
  EXPECT_EQ(Checked({{"strategy.max_staleness", "4"}, {"strategy.mode", "sync"}}),
            "strategy.max_staleness: belongs to strategy.mode async, but strategy.mode is sync; "
            "remove one of the two");
  EXPECT_EQ(Checked({{"strategy.max_staleness", "4"}, {"strategy.name", "one_device"}}),
            "strategy.max_staleness: belongs to strategy.name parameter_server, but strategy.name "
            "is one_device, where no gradient is stale; remove one of the two");
}

TEST(TrainingConfig, StrategiesHaveTheNamesOfTensorFlow) {
  for (const char* name : {"auto", "one_device", "mirrored", "multi_worker_mirrored",
                           "central_storage", "parameter_server"}) {
    EXPECT_EQ(Checked({{"strategy", name}}), "accepted") << name;
  }
  const std::string expected =
      "t.yaml: strategy: expected one of auto, one_device, mirrored, multi_worker_mirrored, "
      "central_storage, parameter_server, got ";
  EXPECT_EQ(ParseError("strategy: MultiWorkerMirroredStrategy"),
            expected + "\"MultiWorkerMirroredStrategy\"; did you mean \"multi_worker_mirrored\"?");
  EXPECT_EQ(ParseError("strategy: tf.distribute.OneDeviceStrategy"),
            expected + "\"tf.distribute.OneDeviceStrategy\"; did you mean \"one_device\"?");
  EXPECT_EQ(ParseError("strategy: miror"), expected + "\"miror\"");
}

TEST(TrainingConfig, KeysOfAGpuAreErrorsOnACpu) {
  EXPECT_EQ(Checked({{"device", "cuda"}, {"gpu", "{memory_fraction: 0.4, allow_tf32: true}"}}),
            "accepted");
  EXPECT_EQ(Checked({{"gpu.allow_tf32", "true"}}), "accepted");
  EXPECT_EQ(Checked({{"device", "cpu"}, {"gpu.allow_tf32", "true"}}),
            "gpu.allow_tf32: belongs to device auto, cuda, but device is cpu; remove one of the "
            "two");
  EXPECT_EQ(Checked({{"gpu.memory_fraction", "1.5"}}),
            "gpu.memory_fraction: expected a value from 0 to 1, got 1.5");
}

TEST(TrainingConfig, KeysOfAnotherStrategyAreErrors) {
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, devices: 3, bytes_per_pack: 4Mi}"}}),
            "accepted");
  EXPECT_EQ(Checked({{"strategy", "{name: central_storage, devices: 2}"}}), "accepted");
  EXPECT_EQ(Checked({{"strategy",
                      "{name: multi_worker_mirrored, timeout_seconds: 30, bytes_per_pack: 0, "
                      "implementation: auto, transport: shared_memory, compression: bfloat16}"}}),
            "accepted");
  EXPECT_EQ(Checked({{"strategy.devices", "2"}}),
            "strategy.devices: belongs to strategy.name mirrored, multi_worker_mirrored, "
            "central_storage, but strategy.name is auto; set strategy.name, or remove "
            "strategy.devices");
  EXPECT_EQ(Checked({{"strategy", "{name: central_storage, bytes_per_pack: 1Mi}"}}),
            "strategy.bytes_per_pack: belongs to strategy.name mirrored, multi_worker_mirrored, "
            "but strategy.name is central_storage; remove one of the two");
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, timeout_seconds: 3}"}}),
            "strategy.timeout_seconds: belongs to strategy.name multi_worker_mirrored, but "
            "strategy.name is mirrored; remove one of the two");
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, transport: tcp}"}}),
            "strategy.transport: belongs to strategy.name multi_worker_mirrored, but "
            "strategy.name is mirrored; remove one of the two");
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, compression: bfloat16}"}}),
            "strategy.compression: belongs to strategy.name multi_worker_mirrored, but "
            "strategy.name is mirrored; remove one of the two");
  EXPECT_EQ(ParseError("strategy: {name: multi_worker_mirrored, compression: fp16}"),
            "t.yaml: strategy.compression: expected one of none, bfloat16, got \"fp16\"");
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, mode: sync}"}}),
            "strategy.mode: belongs to strategy.name auto, parameter_server, but strategy.name is "
            "mirrored; remove one of the two");
  EXPECT_EQ(ParseError("strategy: {devices: 0}"),
            "t.yaml: strategy.devices: expected a value from 1 to 256, got 0");
}

TEST(TrainingConfig, ARingNeedsConnectionsAndValuesThatMayBeRoundedOften) {
  const auto with = [](const char* keys) {
    return Checked({{"strategy", StrCat("{name: multi_worker_mirrored, implementation: ", keys)}});
  };
  EXPECT_EQ(with("ring}"), "accepted");
  EXPECT_EQ(with("ring, transport: tcp, bytes_per_pack: 1Mi, on_failure: shrink}"), "accepted");
  EXPECT_EQ(with("ring, transport: shared_memory}"),
            "strategy.transport: expected auto or tcp, because strategy.implementation is ring, "
            "which needs a connection between each task and the next one, got shared_memory; "
            "remove one of the two");
  EXPECT_EQ(with("ring, compression: bfloat16}"),
            "strategy.compression: expected none, because strategy.implementation is ring, in "
            "which every task would round the sum again, got bfloat16; remove one of the two");
  EXPECT_EQ(Checked({{"strategy", "{name: mirrored, implementation: ring}"}}),
            "strategy.implementation: belongs to strategy.name multi_worker_mirrored, but "
            "strategy.name is mirrored; remove one of the two");
}

TEST(TrainingConfig, TheGlobalBatchIsSplitAsEvenlyAsPossible) {
  EXPECT_EQ(Checked({{"global_batch_size", "7"}}), "accepted");
  EXPECT_EQ(Checked({{"global_batch_size", "64"}, {"batch_size", "32"}}),
            "global_batch_size: expected either batch_size or global_batch_size, got both; remove "
            "one of the two");
  EXPECT_EQ(BatchSize({}, 1, 3), 32);
  EXPECT_EQ(GlobalBatchSize({}, 3), 96);
  TrainingConfig config;
  config.global_batch_size = 7;
  EXPECT_EQ(GlobalBatchSize(config, 3), 7);
  EXPECT_EQ(BatchSize(config, 0, 3), 3);
  EXPECT_EQ(BatchSize(config, 1, 3), 2);
  EXPECT_EQ(BatchSize(config, 2, 3), 2);
  EXPECT_EQ(BatchSize(config, 7, 8), 0);
  EXPECT_EQ(TrainingConfigToJson(config).count("batch_size"), 0u);
  EXPECT_EQ(TrainingConfigToJson({})["batch_size"], 32);
}

TEST(TrainingConfig, WhatIsNotFiniteFailsTheRunByDefault) {
  TrainingConfig config = *ParseTrainingConfig(kSmall, "t.yaml");
  EXPECT_EQ(config.on_non_finite, OnNonFinite::kFail);
  ASSERT_EQ(Override(config, "on_non_finite", "skip"), OkStatus());
  EXPECT_EQ(config.on_non_finite, OnNonFinite::kSkip);
  EXPECT_NE(ParseError("on_non_finite: ignore").find("expected one of fail, skip, continue"),
            std::string::npos)
      << ParseError("on_non_finite: ignore");
}

TEST(TrainingConfig, CheckpointsByStepsReplaceSeconds) {
  TrainingConfig config;
  config.save_checkpoints_steps = 20;
  EXPECT_EQ(CheckpointEvery(config).secs, 0);
  EXPECT_EQ(CheckpointEvery(config).steps, 20);
  config = {};
  config.save_checkpoints_secs = 0;
  EXPECT_EQ(CheckpointEvery(config).secs, 0);
}

TEST(TrainingConfig, OnlySynchronousStepsTakeSeveralGradients) {
  EXPECT_EQ(GradientsPerStep({.mode = PsMode::kAsync, .replicas_to_aggregate = 3}, 4), 1);
  EXPECT_EQ(GradientsPerStep({.mode = PsMode::kSync, .replicas_to_aggregate = 3}, 4), 3);
  EXPECT_EQ(GradientsPerStep({.mode = PsMode::kSync}, 4), 4);
  EXPECT_EQ(GradientsPerStep({.mode = PsMode::kSync}, 0), 0);
}

}  // namespace
}  // namespace tfjob::config
