// Tests training on datasets that are composed of other datasets, from the training file to the
// checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/data/pipeline.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

class Datasets : public testing::Test, public TestCluster {
 protected:
  // Writes the examples 0 to 89 to one file, and also to two files with 40 and 50 examples.
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    Write("whole", 0, 90);
    Write("first", 0, 40);
    Write("second", 40, 90);
  }

  // Writes examples to a file. Example i has the input [i / 100, -i / 100] and the label 2i.
  void Write(const std::string& name, int64_t begin, int64_t end) {
    Tensor x(DType::kFloat32, {end - begin, 2}), y(DType::kFloat32, {end - begin});
    for (int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<size_t>(i - begin);
      x.data<float>()[2 * row] = static_cast<float>(i) / 100;
      x.data<float>()[2 * row + 1] = -static_cast<float>(i) / 100;
      y.data<float>()[row] = static_cast<float>(2 * i);
    }
    const std::vector<std::pair<std::string, Tensor>> arrays = {{"x", x}, {"y", y}};
    ASSERT_TRUE(io::WriteNpz(StrCat(folder_, "/", name, ".npz"), arrays).ok());
  }

  // Returns a dataset in the form of the training file. `keys` begins with a comma.
  std::string File(const std::string& name, const std::string& keys = "") const {
    return StrCat("{format: npz, file: ", folder_, "/", name, ".npz", keys, "}");
  }

  config::TrainingConfig Config(const std::string& train, const std::string& model_dir = "",
                                int max_steps = 1) const {
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
        StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 1}}]}\n",
               "loss: mean_squared_error\noptimizer: {name: sgd, learning_rate: 0.001}\n",
               "data: {train: ", train, "}\nbatch_size: 8\nseed: 5\nmax_steps: ", max_steps,
               model_dir.empty() ? "" : StrCat("\nmodel_dir: ", folder_, "/", model_dir), "\n"),
        "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config::Validate(*config).ok()) << config::Validate(*config);
    return *std::move(config);
  }

  Status Train(const config::TrainingConfig& config) {
    RunningTask chief(config, Static({"chief", 0}, {{"chief", 0}}));
    return chief.End();
  }

  // Returns the contents of the newest checkpoint's files.
  std::string CheckpointIn(const std::string& model_dir) const {
    const auto latest = io::LatestCheckpoint(folder_ + "/" + model_dir);
    EXPECT_TRUE(latest.ok() && *latest) << model_dir;
    if (!latest.ok() || !*latest) return {};
    return ReadFile((*latest)->prefix + ".index").value_or("") +
           ReadFile((*latest)->prefix + ".data-00000-of-00001").value_or("");
  }

  // Returns the numbers of the examples in order. Computes each number as half the label, and
  // checks that the first input is the number / 100, times `scale`.
  std::vector<int64_t> ExamplesOf(const std::string& train, float scale = 1) const {
    const config::TrainingConfig config = Config(train);
    const auto source = LoadDataset(config, Split::kTrain);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    const auto model = ReadModel(config.model);
    const auto columns = ColumnsOf(config, Split::kTrain, *model, **source);
    EXPECT_TRUE(columns.ok()) << columns.status();
    const auto pipeline =
        data::Pipeline::Create(*source, {.epochs = 1, .shuffle = false, .columns = columns->All()});
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    std::vector<int64_t> numbers;
    while (const data::Batch* batch = (*pipeline)->Next()) {
      const auto y = batch->tensors[1].value.data<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        numbers.push_back(static_cast<int64_t>(y[i] / 2));
        EXPECT_FLOAT_EQ(batch->tensors[0].value.data<float>()[2 * i], y[i] / 200 * scale);
      }
    }
    return numbers;
  }

  // Returns the error of loading data.train.
  std::string ErrorOf(const std::string& train) const {
    return std::string(Message(LoadDataset(Config(train), Split::kTrain).status()));
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/datasets_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

using List = std::vector<int64_t>;

TEST_F(Datasets, HaveTheExamplesThatTheKeysChoose) {
  EXPECT_EQ(ExamplesOf(File("whole", ", skip: 3, take: 2, repeat: 2")), (List{3, 4, 3, 4}));
  const std::string both =
      StrCat("datasets: [", File("first", ", take: 2"), ", ", File("second", ", skip: 47"), "]");
  EXPECT_EQ(ExamplesOf(StrCat("{format: concatenate, ", both, "}")), (List{0, 1, 87, 88, 89}));
  EXPECT_EQ(
      ExamplesOf(StrCat("{format: concatenate, skip: 1, take: 3, cache: memory, ", both, "}")),
      (List{1, 87, 88}));
  EXPECT_EQ(ExamplesOf(StrCat("{format: interleave, cycle_length: 2, ", both, "}")),
            (List{0, 87, 1, 88, 89}));
  List mixed = ExamplesOf(StrCat("{format: mix, stop: all, ", both, "}"));
  EXPECT_GE(mixed.size(), 5u);
  std::ranges::sort(mixed);
  mixed.erase(std::unique(mixed.begin(), mixed.end()), mixed.end());
  EXPECT_EQ(mixed, (List{0, 1, 87, 88, 89}));
}

TEST_F(Datasets, ScaleTheInputsOfEachDatasetAndOfAll) {
  const std::string halves = StrCat("datasets: [", File("first", ", scale: 0.5"), ", ",
                                    File("second", ", scale: 0.5"), "]");
  EXPECT_EQ(ExamplesOf(StrCat("{format: concatenate, scale: 4, ", halves, "}"), 2).size(), 90u);
}

// `scale` applies only to float32 inputs, whether or not their values are copied.
TEST_F(Datasets, ScaleNoIntegers) {
  const std::string file = folder_ + "/ids.jsonl";
  ASSERT_TRUE(WriteFileAtomically(file, "{\"x\": [7, 3], \"y\": 1}\n").ok());
  const auto config = config::ParseTrainingConfig(
      StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 2], dtype: int64}}, ",
             "{Embedding: {input_dim: 8, output_dim: 1}}, {Flatten: {}}, {Dense: {units: 1}}]}\n",
             "loss: mean_squared_error\nmax_steps: 1\nbatch_size: 1\n",
             "data: {train: {format: concatenate, cache: memory, datasets: [{format: jsonl, ",
             "scale: 2, files: [", file, "], features: {x: {dtype: int64, shape: [2]}, ",
             "\"y\": {dtype: float32, shape: []}}}]}}\n"),
      "training.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto source = LoadDataset(*config, Split::kTrain);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto model = ReadModel(config->model);
  const auto columns = ColumnsOf(*config, Split::kTrain, *model, **source);
  ASSERT_TRUE(columns.ok()) << columns.status();
  const auto pipeline = data::Pipeline::Create(
      *source, {.batch_size = 1, .epochs = 1, .shuffle = false, .columns = columns->All()});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const data::Batch* batch = (*pipeline)->Next();
  ASSERT_NE(batch, nullptr) << (*pipeline)->status();
  EXPECT_EQ(batch->tensors[0].value.data<int64_t>()[0], 7);
  EXPECT_EQ(batch->tensors[0].value.data<int64_t>()[1], 3);
}

// Every dataset generates different examples, even deeply nested datasets.
TEST_F(Datasets, GenerateDifferentExamples) {
  const std::string drawn = "{format: synthetic, examples: 1}";
  const std::string nested = StrCat("{format: concatenate, datasets: [", drawn, ", ", drawn, "]}");
  const config::TrainingConfig config =
      Config(StrCat("{format: concatenate, datasets: [", nested, ", ", drawn, ", ", nested, "]}"));
  const auto source = LoadDataset(config, Split::kTrain);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto pipeline = data::Pipeline::Create(
      *source, {.batch_size = 5,
                .epochs = 1,
                .shuffle = false,
                .columns = {{.name = "x", .array = data::kFeaturesArray, .shape = {2}}}});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const data::Batch* batch = (*pipeline)->Next();
  ASSERT_NE(batch, nullptr) << (*pipeline)->status();
  const auto values = batch->tensors[0].value.data<float>();
  std::vector<float> firsts;
  for (size_t i = 0; i < values.size(); i += 2) firsts.push_back(values[i]);
  ASSERT_EQ(firsts.size(), 5u);
  std::ranges::sort(firsts);
  EXPECT_EQ(std::ranges::adjacent_find(firsts), firsts.end());
}

TEST_F(Datasets, ZipInputsAndTargetsOfDifferentFiles) {
  EXPECT_EQ(ExamplesOf(StrCat("{format: zip, datasets: [", File("whole", ", inputs: x"), ", ",
                              File("first", ", targets: \"y\""), "]}"))
                .size(),
            40u);
  EXPECT_NE(ErrorOf(StrCat("{format: zip, datasets: [", File("whole", ", inputs: x"), ", ",
                           File("first", ", inputs: x"), "]}"))
                .find("zip: expected features from one dataset only"),
            std::string::npos);
}

TEST_F(Datasets, TrainAsTheSameExamplesInOneFile) {
  ASSERT_EQ(Train(Config(File("whole"), "whole", 30)), OkStatus());
  const std::string parts =
      StrCat("{format: concatenate, datasets: [", File("first"), ", ", File("second"), "]}");
  ASSERT_EQ(Train(Config(parts, "parts", 30)), OkStatus());
  EXPECT_FALSE(CheckpointIn("whole").empty());
  EXPECT_EQ(CheckpointIn("whole"), CheckpointIn("parts"));
}

TEST_F(Datasets, ContinueWhereARunStopped) {
  const std::string mix = StrCat("{format: mix, stop: all, datasets: [",
                                 File("first", ", weight: 3"), ", ", File("second"), "]}");
  config::TrainingConfig whole = Config(mix, "whole", 40), parts = Config(mix, "parts", 17);
  whole.data.shuffle_buffer = parts.data.shuffle_buffer = 20;
  ASSERT_EQ(Train(whole), OkStatus());
  ASSERT_EQ(Train(parts), OkStatus());
  parts.max_steps = 40;
  ASSERT_EQ(Train(parts), OkStatus());
  EXPECT_EQ(CheckpointIn("whole"), CheckpointIn("parts"));
}

TEST_F(Datasets, ErrorsNameTheDataset) {
  EXPECT_EQ(ErrorOf(File("first", ", skip: 40")),
            "data.train: skip: expected fewer than the 40 examples that there are, got 40");
  EXPECT_EQ(ErrorOf(StrCat("{format: concatenate, datasets: [", File("first"), ", ",
                           File("second", ", skip: 50"), "]}")),
            "data.train.datasets[1]: skip: expected fewer than the 50 examples that there are, got "
            "50");
  EXPECT_NE(
      ErrorOf(StrCat("{format: concatenate, datasets: [", File("first"), ", ", File("none"), "]}"))
          .find("none.npz"),
      std::string::npos);
}

// The tasks of a group compare the text of the agreement.
TEST_F(Datasets, TheAgreementCoversTheOperators) {
  const auto agreement = [&](const std::string& train) {
    const config::TrainingConfig config = Config(train);
    const auto source = LoadDataset(config, Split::kTrain);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? TrainingAgreement(config, **source) : "";
  };
  const auto mix = [&](const std::string& weight) {
    return StrCat("{format: mix, take: 10, datasets: [", File("first", weight), ", ",
                  File("second"), "]}");
  };
  EXPECT_EQ(agreement(mix(", weight: 2")), agreement(mix(", weight: 2")));
  EXPECT_NE(agreement(mix(", weight: 2")), agreement(mix(", weight: 3")));
}

}  // namespace
}  // namespace tfjob::train
