// Tests the output of tfjob-trainer --print. Compares the stages of a small training file with the
// files in golden/. After an intended change, run from the workspace root:
//
//   TFJOB_UPDATE_GOLDEN=1 bazel-bin/runtime/cmd/print_test
//
// and check git diff.
#include "runtime/cmd/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/data/images/test_folder.h"

namespace tfjob::cmd {
namespace {

config::TrainingConfig SmallConfig() {
  StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(R"(
model:
  layers:
    - InputLayer: {batch_shape: [null, 2]}
    - Dense: {units: 3, activation: relu}
    - Dense: {units: 1}
loss: mean_squared_error
optimizer: {name: adam, learning_rate: 0.1}
data: {train: {format: linear, weights: [2.0, 1.0], examples: 8}}
batch_size: 4
max_steps: 10
threads: 1
)",
                                                                        "training.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

cluster::TfConfig WorkerOfASmallCluster() {
  StatusOr<cluster::TfConfig> config = cluster::ParseTfConfig(
      R"({"cluster":{"chief":["c:2222"],"ps":["p0:2222","p1:2222"],"worker":["w:2222"],)"
      R"("evaluator":["e:2222"]},"task":{"type":"worker","index":0}})");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

void Compare(const std::string& name, const std::string& text) {
  const std::string path = StrCat("runtime/cmd/golden/", name, ".exp");
  if (GetEnv("TFJOB_UPDATE_GOLDEN")) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok()) << path;
    return;
  }
  const StatusOr<std::string> golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(text, *golden) << path << " differs; see the top of this file if that is intended";
}

void CompareStage(const std::string& name, const std::string& stage,
                  const cluster::TfConfig& tf_config) {
  const StatusOr<std::string> text = PrintStage(stage, SmallConfig(), tf_config);
  ASSERT_TRUE(text.ok()) << text.status();
  Compare(StrCat(name, ".", stage), *text);
}

TEST(PrintStage, ShowsEveryStageOfAWorkerWithParameterServers) {
  Compare("worker.cluster", PrintCluster(WorkerOfASmallCluster()));
  for (const char* stage : {"config", "data", "model", "graph", "placement", "program"})
    CompareStage("worker", stage, WorkerOfASmallCluster());
}

// Two kernels that fit into memory one by one, but not together.
TEST(PrintStage, RefusesAModelThatDoesNotFitIntoMemory) {
  const auto units = static_cast<int64_t>(std::sqrt(0.15 * static_cast<double>(AvailableMemory())));
  const StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
      StrCat("model: {layers: [{InputLayer: {batch_shape: [null, ", units,
             "]}}, {Dense: {units: ", units, "}}, {Dense: {units: ", units, R"(}}]}
loss: mean_squared_error
optimizer: sgd
data: {train: {format: synthetic, examples: 1}}
batch_size: 1
max_steps: 1
)"),
      "training.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const Status status = PrintStage("program", *config, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_NE(Message(status).find(
                StrCat("The largest tensors: dense/kernel float32[", units, ",", units, "] (")),
            std::string_view::npos)
      << status;
}

TEST(PrintStage, ShowsEveryStageOfATaskThatTrainsAlone) {
  Compare("alone.cluster", PrintCluster({}));
  // Without parameter servers, the graph itself applies the optimizer.
  for (const char* stage : {"data", "graph", "program"}) CompareStage("alone", stage, {});
  const Status placement = PrintStage("placement", SmallConfig(), {}).status();
  EXPECT_EQ(placement.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Message(placement).starts_with("--print=placement: TF_CONFIG has no ps tasks"))
      << placement;
}

cluster::TfConfig WorkerOfAGroup() {
  StatusOr<cluster::TfConfig> config =
      cluster::ParseTfConfig(R"({"cluster":{"chief":["c:2222"],"worker":["v:2222","w:2222"]},)"
                             R"("task":{"type":"worker","index":0}})");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

TEST(PrintStage, ShowsWhatTheTasksOfAGroupExchange) {
  CompareStage("group", "collectives", WorkerOfAGroup());
  CompareStage("group", "data", WorkerOfAGroup());
}

// Returns the "collectives" stage for a training file with this `strategy` section, on these
// machines.
std::string Collectives(const std::string& strategy, const cluster::TfConfig& tf_config,
                        const std::string& machines = "") {
  config::TrainingConfig config = SmallConfig();
  const Status set = config::Override(config, "strategy", strategy);
  EXPECT_TRUE(set.ok()) << set;
  const StatusOr<std::string> text = PrintStage("collectives", config, tf_config, machines);
  return text.ok() ? *text : text.status().ToString();
}

TEST(PrintStage, ShowsPlansInTwoLevelsForGivenMachines) {
  config::TrainingConfig config = SmallConfig();
  ASSERT_EQ(config::Override(config, "model",
                             "{layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: "
                             "100000}}, {Dense: {units: 1}}]}"),
            OkStatus());
  const StatusOr<std::string> text =
      PrintStage("collectives", config, WorkerOfAGroup(), "node-a*2,node-b");
  ASSERT_TRUE(text.ok()) << text.status();
  for (const char* part :
       {"\ntransport: shared memory and tcp; 2 machines: ranks 0-1, rank 2\n",
        "\ncosts of shared memory: ", "\n  two levels, predicted ",
        "\n  within the machine: through the memory of 1 other rank; links carry only signals\n"
        "  rank 0 (chief 0), same machine: sends 24 bytes in 2 frames, receives 24 bytes in 2 "
        "frames\n  rank 2 (worker 1): sends "}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
  }
}

TEST(PrintStage, RefusesMachinesThatDoNotFit) {
  const std::string group = "multi_worker_mirrored";
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_TRUE(text.starts_with("INVALID_ARGUMENT: --machines: ")) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(Collectives(group, WorkerOfAGroup(), "a*2"), "the machines of 3 ranks, got 2");
  expect(Collectives(group, WorkerOfAGroup(), "a*"), "\"a*\": expected the name of a machine");
  expect(Collectives("{name: multi_worker_mirrored, transport: tcp}", WorkerOfAGroup(), "a*3"),
         "expected strategy.transport: auto, got tcp");
  expect(Collectives("auto", WorkerOfASmallCluster(), "a*2"), "got parameter_server");
  EXPECT_EQ(PrintStage("model", SmallConfig(), {}, "a").status(),
            InvalidArgument("--machines: expected --print=collectives, got --print=model"));
  const std::string one = Collectives(group, WorkerOfAGroup(), "a*3");
  EXPECT_NE(one.find("\ntransport: shared memory; "), std::string::npos) << one;
  const std::string alone = Collectives(group, WorkerOfAGroup(), "a,b,c");
  EXPECT_NE(alone.find("\ntransport: tcp\n"), std::string::npos) << alone;
}

TEST(PrintStage, ShowsTheTransportOfEachStrategy) {
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::string tcp =
      Collectives("{name: multi_worker_mirrored, transport: tcp}", WorkerOfAGroup());
  contains(tcp, "\ntransport: tcp\ncosts of tcp: ");
  contains(tcp, "fingerprint");
  const std::string shared =
      Collectives("{name: multi_worker_mirrored, transport: shared_memory}", WorkerOfAGroup());
  contains(shared, "\ntransport: shared memory; ");
  EXPECT_EQ(shared.find("fingerprint"), std::string::npos) << shared;
  const std::string mirrored = Collectives("{name: mirrored, devices: 3}", {});
  contains(mirrored, "\n3 ranks: the devices of this task\ntransport: threads; ");
  contains(mirrored, "\nbucket 0: ");
  contains(Collectives("{name: central_storage, devices: 3}", {}),
           "\n3 ranks: the devices of this task\ntransport: threads; ");
  contains(Collectives("auto", WorkerOfASmallCluster()),
           "strategy: parameter_server\nno gradients are exchanged between tasks");
  contains(Collectives("auto", {}), "strategy: one_device\nno gradients are exchanged");
  contains(Collectives("mirrored", WorkerOfAGroup()), "strategy.name");  // an error
}

// The bias of the last layer is padded to 64 bytes in both cases.
TEST(PrintStage, ShowsThatCompressionHalvesTheBytesOnEachLink) {
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::string strategy =
      "{name: multi_worker_mirrored, transport: tcp, bytes_per_pack: 1Mi, compression: ";
  const std::string model =
      "{layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 1024}}, "
      "{Dense: {units: 1}}]}";
  const auto print = [&](const std::string& compression) {
    config::TrainingConfig config = SmallConfig();
    EXPECT_EQ(config::Override(config, "model", model), OkStatus());
    EXPECT_EQ(config::Override(config, "strategy", strategy + compression + "}"), OkStatus());
    return *PrintStage("collectives", config, WorkerOfAGroup());
  };
  const std::string plain = print("none"), compressed = print("bfloat16");
  contains(plain, "bucket 0: 16448 bytes of float32");
  contains(plain, "rank 0 (chief 0): sends 16448 bytes in 1 frames, receives 16448 bytes");
  EXPECT_EQ(plain.find("compression"), std::string::npos) << plain;
  contains(compressed, "\ncompression: bfloat16; ");
  contains(compressed, "bucket 0: 8256 bytes of bfloat16");
  contains(compressed, "rank 0 (chief 0): sends 8256 bytes in 1 frames, receives 8256 bytes");
}

TEST(PrintStage, SaysThatARingDoesNotAddInTheOrderOfTheTree) {
  const std::string ring =
      Collectives("{name: multi_worker_mirrored, implementation: ring}", WorkerOfAGroup());
  const auto contains = [&](const char* part) {
    EXPECT_NE(ring.find(part), std::string::npos) << ring;
  };
  contains("\ntransport: tcp\n");
  contains(
      "\norder of additions: around the ring; the order of the tree does not hold. All ranks ");
  contains("\n  ring, predicted ");
  const std::string tree = Collectives("{name: multi_worker_mirrored}", WorkerOfAGroup());
  EXPECT_EQ(tree.find("around the ring"), std::string::npos) << tree;
}

TEST(PrintStage, ShowsWhichGradientsTravelByRows) {
  config::TrainingConfig config = SmallConfig();
  const Status set = config::Override(
      config, "model",
      "{layers: [{InputLayer: {batch_shape: [null, 2]}}, {Embedding: {input_dim: 1000, "
      "output_dim: 16}}, GlobalAveragePooling1D, {Dense: {units: 1}}]}");
  ASSERT_TRUE(set.ok()) << set;
  const StatusOr<std::string> text = PrintStage("collectives", config, WorkerOfAGroup());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("\nrows of embedding/embeddings, [1000, 16] of float32: each rank sends "
                       "those that it has, at most 8 of 72 bytes with the index, to each other "
                       "rank; if all ranks together have more than 1888, the ranks reduce the "
                       "whole gradient, 68000 bytes\nall buckets: predicted "),
            std::string::npos)
      << *text;
  EXPECT_EQ(text->find("contribution: embedding"), std::string::npos) << *text;
}

TEST(PrintStage, ShowsTheExchangesOfTheProgram) {
  config::TrainingConfig config = SmallConfig();
  const Status set = config::Override(
      config, "model",
      "{layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 3, use_bias: false}}, "
      "{BatchNormalization: {synchronized: true}}, {Dense: {units: 1}}]}");
  ASSERT_TRUE(set.ok()) << set;
  const StatusOr<std::string> text = PrintStage("collectives", config, WorkerOfAGroup());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("bucket 0: 24 bytes of float32, exchange "
                       "batch_normalization/AllReduceMean in the program\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("bucket 1: 24 bytes of float32, exchange "), std::string::npos) << *text;
  EXPECT_NE(text->find("bucket 2: "), std::string::npos) << *text;
}

TEST(PrintStage, ShowsTheEvaluationData) {
  config::TrainingConfig config = SmallConfig();
  const std::string file = StrCat(testing::TempDir(), "/print_test.csv");
  ASSERT_TRUE(WriteFileAtomically(file, "1,2,3\n4,5,6\n7,8,9\n").ok());
  config.data.eval = {
      .format = config::DataFormat::kCsv, .scale = 0.5, .file = file, .header = false};
  const StatusOr<std::string> text = PrintStage("data", config, WorkerOfASmallCluster());
  ASSERT_TRUE(text.ok()) << text.status();
  const size_t eval = text->find("\ndata.eval\n");
  ASSERT_NE(eval, std::string::npos) << *text;
  EXPECT_EQ(text->substr(eval),
            StrCat("\ndata.eval\nsource: csv: ", file, "; 48 bytes in memory\n",
                   "examples: 3\n"
                   "fields of an example: features float32 [2], labels float64 []\n"
                   "order: that of the files, in every epoch\n"
                   "share: all examples\n"
                   "batches: 1 per epoch, of 3 examples; epochs: 1\n"
                   "tensors of a batch:\n"
                   "  features: float32 [3,2], multiplied by 0.5\n"
                   "  labels: float32 [3]\n"
                   "buffers: 5 of 36 bytes; 4 batches are prepared ahead\n"));
}

TEST(PrintStage, ShowsAFolderOfImages) {
  const data::testing::ImageFolder folder;
  uint64_t bytes = 0;
  for (const char* name : {"cats/1.png", "dogs/1.png", "dogs/2.png"})
    bytes += std::filesystem::file_size(folder.WriteGrey(name, 7));
  config::TrainingConfig config = SmallConfig();
  config.data.train = {.format = config::DataFormat::kImages,
                       .scale = 0.5,
                       .folder = folder.path(),
                       .height = 4,
                       .width = 5,
                       .channels = 1};
  config.data.threads = 3;
  const Status set =
      config::Override(config, "model",
                       "{layers: [{InputLayer: {batch_shape: [null, 4, 5, 1]}}, Flatten, {Dense: "
                       "{units: 1}}]}");
  ASSERT_TRUE(set.ok()) << set;
  const StatusOr<std::string> text = PrintStage("data", config, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(text->starts_with(StrCat("data.train\nsource: images: ", folder.path(),
                                       "; 2 classes; ", bytes,
                                       " bytes, read and decoded when a batch needs them by 3 "
                                       "threads; list of ")))
      << *text;
  EXPECT_NE(text->find(" bytes in memory\nexamples: 3\n"
                       "fields of an example: features float32 [4,5,1], labels int64 []\n"
                       "order: shuffled for every epoch, seed 0; a list of 12 bytes\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find(",4,5,1], multiplied by 0.5\n"), std::string::npos) << *text;
}

TEST(PrintStage, ShowsNoShareOfATaskThatDoesNotTrain) {
  config::TrainingConfig config = SmallConfig();
  const std::string file = StrCat(testing::TempDir(), "/not_trained.csv");
  ASSERT_TRUE(WriteFileAtomically(file, "1,2,3\n4,5,6\n").ok());
  config.data.eval = {.format = config::DataFormat::kCsv, .file = file, .header = false};
  const std::string none = "data.train\nshare: none; this task does not train\n";
  cluster::TfConfig tf_config = WorkerOfASmallCluster();
  tf_config.task = {"ps", 0};
  StatusOr<std::string> text = PrintStage("data", config, tf_config);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, none);
  tf_config.task = {"evaluator", 0};
  text = PrintStage("data", config, tf_config);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(text->starts_with(none + "\ndata.eval\nsource: csv: ")) << *text;
}

TEST(PrintStage, SaysWhatCannotBeRead) {
  config::TrainingConfig config = SmallConfig();
  config.data.train = {.format = config::DataFormat::kCsv, .file = "/nowhere/data.csv"};
  const Status status = PrintStage("model", config, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(Message(status).find("/nowhere/data.csv"), std::string_view::npos) << status;
}

TEST(PrintPlacement, NamesEveryShardItsServerAndItsBytes) {
  ps::Definition definition{.max_shard_bytes = 120};
  definition.state.variables = {{.name = "dense/kernel", .shape = {6, 10}},
                                {.name = "dense/bias", .shape = {10}},
                                {.name = "steps", .update = state::Update::kAssign}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  EXPECT_EQ(PrintPlacement(definition, 2),
            "shard  server  bytes  of\n"
            "0  ps 0  120  dense/kernel  bytes 0 to 120\n"
            "1  ps 1  120  dense/kernel  bytes 120 to 240\n"
            "2  ps 0  40  dense/bias  bytes 0 to 40\n"
            "3  ps 1  4  steps  bytes 0 to 4\n"
            "ps 0 holds 2 shards, 480 bytes with 2 optimizer slots\n"
            "ps 1 holds 2 shards, 364 bytes with 2 optimizer slots\n");
}

}  // namespace
}  // namespace tfjob::cmd
