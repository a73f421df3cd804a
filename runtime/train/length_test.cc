// Tests training and evaluation on batches of examples of similar lengths, and on masked tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "runtime/data/buckets.h"
#include "runtime/exec/device.h"
#include "runtime/io/npy.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/data_text.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/job/job_inputs.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

class Lengths : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    std::ofstream file(folder_ + "/a.txt", std::ios::binary);
    for (int i = 0; i < 40; ++i)
      file << std::string_view("abcabcabcabc").substr(i % 3, 1 + i % 9) << "\n";
  }

  static config::TrainingConfig Parsed(const std::string& text) {
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config::Validate(*config), OkStatus());
    return *std::move(config);
  }

  // Returns a training file for a model that predicts the next byte at each position, in lines of
  // up to 9 bytes.
  config::TrainingConfig NextByte(const std::string& more) const {
    const std::string source =
        StrCat("{format: text, files: [", folder_,
               "/a.txt], tokenize: {name: byte, max_length: 9, add_special_tokens: false}}");
    return Parsed(
        StrCat("model: {layers: [{InputLayer: {batch_shape: [null, null], dtype: int64}}, ",
               "{Embedding: {input_dim: 259, output_dim: 16, mask_zero: true}}, ",
               "{LSTM: {units: 16, return_sequences: true}}, {Dense: {units: 259}}]}\n",
               "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
               "weighted_metrics: [accuracy]\n", "optimizer: {name: adam, learning_rate: 0.02}\n",
               "log_step_count_steps: 10\nmodel_dir: ", folder_, "/model\n",
               "data: {train: ", source, ", eval: ", source, "}\n", more));
  }
  static config::TrainingConfig InBuckets(config::TrainingConfig config) {
    for (const auto& [key, value] :
         {std::pair("boundaries", "[2, 5]"), {"batch_sizes", "[8, 4, 2]"}})
      EXPECT_EQ(Override(config, StrCat("data.bucket_by_length.", key), value), OkStatus());
    EXPECT_EQ(config::Validate(config), OkStatus());
    return config;
  }

  // Evaluates the model with its initial values.
  static StatusOr<strategy::MetricTotals> Evaluated(const config::TrainingConfig& config) {
    ASSIGN_OR_RETURN(const model::Model model, ReadModel(config.model));
    ASSIGN_OR_RETURN(auto source, DataOf({}, config, Split::kEval, model));
    ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                     DefineModel(config, Split::kEval, *source, 1, model));
    ASSIGN_OR_RETURN(const auto evaluation,
                     Evaluation::Create(config, definition, source, exec::CpuDevice()));
    return evaluation->Run(strategy::InitialState(definition), StopSource());
  }
  static std::string Error(const config::TrainingConfig& config) {
    const auto model = ReadModel(config.model);
    EXPECT_TRUE(model.ok()) << model.status();
    const auto source = DataOf({}, config, Split::kTrain, *model);
    if (!source.ok()) return std::string(Message(source.status()));
    return std::string(Message(DefineModel(config, Split::kTrain, **source, 1, *model).status()));
  }

  // Trains in a job with a single task, and returns the task's last progress.
  progress::Progress Trained(const config::TrainingConfig& config) {
    RunningTask chief(config, Static({"chief", 0}, {{"chief", 0}}));
    EXPECT_EQ(chief.End(), OkStatus());
    return chief.Progress();
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/length_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Lengths, ABatchOfABucketTeachesTheNextByte) {
  const progress::Progress progress = Trained(InBuckets(NextByte("max_steps: 300\n")));
  EXPECT_GE(progress.metrics.at("accuracy"), 0.95);
}

TEST_F(Lengths, EvaluationDoesNotDependOnTheBuckets) {
  const config::TrainingConfig config = Parsed(StrCat(
      "model: {layers: [{InputLayer: {batch_shape: [null, null], dtype: int64}}, {Embedding: ",
      "{input_dim: 259, output_dim: 8, mask_zero: true}}, {LSTM: {units: 4}}, ",
      "{Dense: {units: 259}}]}\n",
      "loss: {name: sparse_categorical_crossentropy, from_logits: true}\nmetrics: [accuracy]\n",
      "epochs: 1\ndata: {train: {format: linear}, eval: {format: texts, folder: ", folder_,
      "/classes, tokenize: {name: byte, max_length: 9, add_special_tokens: false}}}\n"));
  for (int i = 0; i < 30; ++i) {
    const std::string path = StrCat(folder_, "/classes/", i % 3);
    std::filesystem::create_directories(path);
    std::ofstream(StrCat(path, "/", i, ".txt")) << std::string(static_cast<size_t>(1 + i % 9), 'a');
  }
  const auto whole = Evaluated(config), buckets = Evaluated(InBuckets(config));
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(buckets.ok()) << buckets.status();
  EXPECT_EQ(whole->examples, 30);
  EXPECT_EQ(buckets->examples, 30);
  EXPECT_NEAR(buckets->loss(), whole->loss(), 1e-5);
  EXPECT_EQ(buckets->metric_sums, whole->metric_sums);
}

TEST_F(Lengths, SeveralDevicesShareTheBatchesOfABucket) {
  config::TrainingConfig config =
      InBuckets(NextByte("max_steps: 200\nstrategy: {name: mirrored, devices: 2}\n"));
  EXPECT_GE(Trained(config).metrics.at("accuracy"), 0.9);
}

TEST_F(Lengths, TasksMakeTheBatchesOfABucketTogether) {
  const config::TrainingConfig config = InBuckets(NextByte("epochs: 12\n"));
  const std::vector<Task> all = {{"chief", 0}, {"worker", 0}};
  for (const Task& task : all) AddressOf(task);
  RunningTask worker(config, Static(all[1], all));
  RunningTask chief(config, Static(all[0], all));
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(worker.End(), OkStatus());
  const auto source = DataOf({}, config, Split::kTrain, *ReadModel(config.model));
  ASSERT_TRUE(source.ok()) << source.status();
  // The buckets for lengths up to 2, 5 and 9 have 9 or 10, 13 or 14, and 17 examples, respectively.
  EXPECT_EQ(chief.Progress().step, 12 * BatchesPerEpoch(config, **source, 2, /*together=*/true));
}

TEST_F(Lengths, ServersGetGradientsOfBatchesOfABucket) {
  const config::TrainingConfig config = InBuckets(NextByte("epochs: 6\n"));
  const std::vector<Task> all = {{"chief", 0}, {"worker", 0}, {"ps", 0}};
  for (const Task& task : all) AddressOf(task);
  RunningTask server(config, Static(all[2], all));
  RunningTask worker(config, Static(all[1], all));
  RunningTask chief(config, Static(all[0], all));
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(worker.End(), OkStatus());
  EXPECT_EQ(server.End(), OkStatus());
}

TEST_F(Lengths, AreDescribed) {
  const auto text = DescribeData(InBuckets(NextByte("epochs: 1\n")), {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ::testing::HasSubstr("  lengths 1 to 2: "));
  EXPECT_THAT(*text, ::testing::HasSubstr("tensors of the longest batch:\n  features: int64 [2,9]\n"
                                          "  labels: int64 [2,9], numbers of 259 classes\n"
                                          "  sample_weights: float32 [2,9]\n"));
}

TEST_F(Lengths, ModelsThatNeedALengthAreRefused) {
  config::TrainingConfig config = InBuckets(NextByte("epochs: 1\n"));
  const auto with = [&](const std::string& layers) {
    EXPECT_EQ(Override(config, "model.layers", layers), OkStatus());
    return Error(config);
  };
  EXPECT_THAT(with("[{InputLayer: {batch_shape: [null, 9], dtype: int64}}, "
                   "{Embedding: {input_dim: 259, output_dim: 4}}, {Dense: {units: 259}}]"),
              ::testing::StartsWith("data.bucket_by_length (data.train): expected a model that "
                                    "takes any length"));
}

TEST_F(Lengths, OutputsMustHaveThePlacesOfTheInputs) {
  const auto with = [&](const std::string& layer, int64_t labels) {
    const std::string x = folder_ + "/x.npy", y = folder_ + "/y.npy";
    EXPECT_EQ(io::WriteNpy(x, Tensor(DType::kFloat32, {3, 9, 1})), OkStatus());
    EXPECT_EQ(io::WriteNpy(y, Tensor(DType::kInt64, {3, labels})), OkStatus());
    return Error(InBuckets(Parsed(
        StrCat("model: {layers: [{InputLayer: {batch_shape: [null, null, 1]}}, ", layer, "]}\n",
               "loss: {name: sparse_categorical_crossentropy, from_logits: true}\nepochs: 1\n",
               "data: {train: {format: npz, inputs: ", x, ", targets: ", y, "}}\n"))));
  };
  EXPECT_EQ(with("{Conv1D: {filters: 4, kernel_size: 1}}", 9), "");
  EXPECT_THAT(with("{Conv1D: {filters: 4, kernel_size: 1, strides: 2}}", 5),
              ::testing::StartsWith("data.bucket_by_length: expected outputs with as many places "
                                    "as the inputs, or whose shape does not depend on them"));
  EXPECT_THAT(with("{Conv1D: {filters: 4, kernel_size: 4}}", 6),
              ::testing::StartsWith("data.bucket_by_length: length 2: "));
}

// The padding of this tokenizer is the id 3.
TEST_F(Lengths, ThePaddingIsThatOfTheTokenizer) {
  std::ofstream(folder_ + "/vocab.txt") << "[UNK]\nfilm\ngood\n[PAD]\n[MASK]\n";
  std::ofstream(folder_ + "/b.txt") << "good\ngood film\ngood film good\nfilm\n";
  const std::string source =
      StrCat("{format: text, files: [", folder_,
             "/b.txt], targets: same_token, tokenize: {name: ", "wordpiece, vocabulary: ", folder_,
             "/vocab.txt, max_length: 9, add_special_tokens: ", "false}}");
  const config::TrainingConfig config = InBuckets(
      Parsed(StrCat("model: {layers: [{InputLayer: {batch_shape: [null, null], dtype: int64}}, ",
                    "{Embedding: {input_dim: 5, output_dim: 4}}, {Dense: {units: 5}}]}\n",
                    "loss: {name: sparse_categorical_crossentropy, from_logits: true}\nepochs: 1\n",
                    "data: {train: ", source, ", mask_tokens: {mask_token: 4, vocabulary_size: 5, ",
                    "special_tokens: [0], rate: 1}}\n")));
  const auto data = DataOf({}, config, Split::kTrain, *ReadModel(config.model));
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_NE((*data)->buckets(), nullptr);
  EXPECT_EQ((*data)->buckets()->size(0), 3) << "texts of up to 2 words";
  EXPECT_EQ((*data)->buckets()->size(1), 1);
  EXPECT_EQ((*data)->buckets()->size(2), 0);
  const auto reader =
      (*data)->Open({{.name = "x", .array = "features", .dtype = DType::kInt64, .shape = {9}}});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<data::NamedTensor> rows = {{"x", Tensor(DType::kInt64, {4, 9})}};
  ASSERT_EQ((*reader)->Read(std::vector<int64_t>{0, 1, 2, 3}, rows), OkStatus());
  const std::span<const int64_t> ids = std::as_const(rows[0].value).data<int64_t>();
  for (size_t row = 0; row < 4; ++row)
    EXPECT_THAT(ids.subspan(9 * row + 3, 6), ::testing::Each(3)) << "masked padding in " << row;
}

// The labels of 9 positions with 2 values each are stored as a row of 18 values. Every prediction
// is 0, and every label at a position that is not masked is 1. The loss is therefore 1 if every
// position gets its own labels.
TEST_F(Lengths, LabelsOfAnyLayoutAreCutAtTheLengthOfTheOutput) {
  const auto evaluated = [&](const std::string& layer, const Shape& labels, bool buckets) {
    const std::string x = folder_ + "/x.npy", y = folder_ + "/y.npy";
    Tensor inputs(DType::kFloat32, {3, 9, 1}), targets(DType::kFloat32, labels);
    for (int64_t i = 0; i < 3; ++i) {
      const auto row = static_cast<size_t>(i), length = 2 + 3 * row;
      const auto width = static_cast<size_t>(targets.num_elements()) / 3;
      for (size_t k = 0; k < length; ++k) inputs.data<float>()[row * 9 + k] = 1;
      for (size_t k = 0; k < width; ++k)
        targets.data<float>()[row * width + k] = static_cast<float>(k < length * width / 9);
    }
    EXPECT_EQ(io::WriteNpy(x, inputs), OkStatus());
    EXPECT_EQ(io::WriteNpy(y, targets), OkStatus());
    const config::TrainingConfig config = Parsed(StrCat(
        "model: {layers: [{InputLayer: {batch_shape: [null, null, 1]}}, {Masking: {}}, ", layer,
        "]}\nloss: mean_squared_error\nepochs: 1\ndata: {train: {format: linear}, eval: {format: ",
        "npz, inputs: ", x, ", targets: ", y, "}}\n"));
    const auto totals = Evaluated(buckets ? InBuckets(config) : config);
    EXPECT_TRUE(totals.ok()) << totals.status();
    return totals.ok() ? totals->loss() : -1;
  };
  const std::string ones = "{Dense: {units: 2, kernel_initializer: zeros}}";
  EXPECT_NEAR(evaluated(ones, {3, 18}, false), 1, 1e-6);
  EXPECT_NEAR(evaluated(ones, {3, 18}, true), 1, 1e-6);
  const std::string one = "{Dense: {units: 1, kernel_initializer: zeros}}";
  EXPECT_NEAR(evaluated(one, {3, 1, 9}, false), 1, 1e-6);
  EXPECT_NEAR(evaluated(one, {3, 1, 9}, true), 1, 1e-6);
}

TEST_F(Lengths, PlacesCannotBeClasses) {
  const std::string x = folder_ + "/x.npy", y = folder_ + "/y.npy";
  EXPECT_EQ(io::WriteNpy(x, Tensor(DType::kFloat32, {3, 9, 1})), OkStatus());
  EXPECT_EQ(io::WriteNpy(y, Tensor(DType::kInt64, {3})), OkStatus());
  EXPECT_THAT(
      Error(InBuckets(Parsed(
          StrCat("model: {layers: [{InputLayer: {batch_shape: [null, null, 1]}}, Flatten]}\n",
                 "loss: {name: sparse_categorical_crossentropy, from_logits: true}\nepochs: 1\n",
                 "data: {train: {format: npz, inputs: ", x, ", targets: ", y, "}}\n")))),
      ::testing::StartsWith("data.bucket_by_length: expected as many classes in all batches, but "
                            "output flatten has one score per place of the inputs"));
}

TEST_F(Lengths, BoundariesMustBeBelowTheLongest) {
  config::TrainingConfig config = NextByte("epochs: 1\n");
  EXPECT_EQ(Override(config, "data.bucket_by_length.boundaries", "[4, 9]"), OkStatus());
  EXPECT_EQ(Error(config),
            "data.bucket_by_length (data.train): expected ascending boundaries from 1 to 8, one "
            "less than the length of the examples, got 9");
}

TEST_F(Lengths, MaskedTokensArePredictedFromTheOthers) {
  const std::string source = StrCat("{format: text, files: [", folder_,
                                    "/b.txt], targets: same_token, tokenize: {name: byte, "
                                    "max_length: 6, add_special_tokens: false}}");
  std::ofstream file(folder_ + "/b.txt", std::ios::binary);
  for (int i = 0; i < 30; ++i) file << std::string_view("abcabcab").substr(i % 3, 6) << "\n";
  file.close();
  // The tokenizer does not use the id 2.
  const config::TrainingConfig config = Parsed(StrCat(
      "model: {layers: [{InputLayer: {batch_shape: [null, 6], dtype: int64}}, {Embedding: ",
      "{input_dim: 259, output_dim: 16}}, {Conv1D: {filters: 32, kernel_size: 5, padding: same, ",
      "activation: relu}}, {Dense: {units: 259}}]}\n",
      "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
      "weighted_metrics: [accuracy]\noptimizer: {name: adam, learning_rate: 0.01}\n",
      "data: {train: ", source, ", mask_tokens: {mask_token: 2, vocabulary_size: 259, ",
      "special_tokens: [0, 1]}}\nbatch_size: 10\nmax_steps: 400\nlog_step_count_steps: 10\n",
      "model_dir: ", folder_, "/model\n"));
  EXPECT_GE(Trained(config).metrics.at("accuracy"), 0.85);
  const auto text = DescribeData(config, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ::testing::HasSubstr("; 15 % of the tokens are masked"));
}

}  // namespace
}  // namespace tfjob::train
