// Tests training on TFRecord files and JSON lines, from the training file to the checkpoint.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "runtime/base/file.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/io/record.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

using data::testing::ExampleOf;
using data::testing::FloatFeature;
using data::testing::Int64Feature;

constexpr int64_t kExamples = 90;

class TfRecordData : public testing::Test, public TestCluster {
 protected:
  // Writes the same examples as arrays, as two files of records, and as JSON lines.
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    Tensor x(DType::kFloat32, {kExamples, 2}), y(DType::kInt64, {kExamples}),
        w(DType::kFloat32, {kExamples});
    std::string records[2], lines;
    for (int64_t i = 0; i < kExamples; ++i) {
      const auto row = static_cast<size_t>(i);
      const float a = static_cast<float>(i % 7) / 7, b = static_cast<float>(i % 5) / 5;
      x.data<float>()[2 * row] = a;
      x.data<float>()[2 * row + 1] = b;
      y.data<int64_t>()[row] = i % 3;
      w.data<float>()[row] = b;
      io::AppendRecord(ExampleOf({{"point", FloatFeature({a, b})},
                                  {"class", Int64Feature({i % 3})},
                                  {"weight", FloatFeature({b})}}),
                       records[i < 40 ? 0 : 1]);
      // Nine digits determine a float32 uniquely.
      lines += absl::StrFormat("{\"point\": [%.9g, %.9g], \"class\": %d, \"weight\": %.9g}\n", a, b,
                               i % 3, b);
    }
    Write("lines", lines);
    const std::vector<std::pair<std::string, Tensor>> arrays = {
        {"point", x}, {"class", y}, {"weight", w}};
    ASSERT_TRUE(io::WriteNpz(folder_ + "/train.npz", arrays).ok());
    Write("part-0", records[0]);
    Write("part-1", records[1]);
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }

  config::TrainingConfig Config(const std::string& format, const std::string& model_dir,
                                int max_steps) const {
    std::string source = StrCat("format: npz, file: ", folder_, "/train.npz");
    if (format != "npz") {
      source = StrCat("format: ", format, ", files: [\"", folder_,
                      format == "jsonl" ? "/lines" : "/part-*", "\"], features: {",
                      "point: {dtype: float32, shape: [2]}, class: {dtype: int64, shape: []}, ",
                      "weight: {dtype: float32, shape: []}}");
    }
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
        StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 3}}]}\n",
               "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
               "data: {train: {", source,
               ", inputs: point, targets: class, sample_weights: weight}}\n",
               "batch_size: 8\nseed: 5\nmax_steps: ", max_steps, "\nmodel_dir: ", folder_, "/",
               model_dir, "\n"),
        "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config::Validate(*config).ok()) << config::Validate(*config);
    return *std::move(config);
  }

  Status Train(const config::TrainingConfig& config) {
    RunningTask chief(config, Static({"chief", 0}, {{"chief", 0}}));
    const Status ended = chief.End();
    problems_ = chief.Progress().problems;
    return ended;
  }

  // Returns the contents of the newest checkpoint's files.
  std::string CheckpointIn(const std::string& model_dir) const {
    const auto latest = io::LatestCheckpoint(folder_ + "/" + model_dir);
    EXPECT_TRUE(latest.ok() && *latest) << model_dir;
    if (!latest.ok() || !*latest) return {};
    return ReadFile((*latest)->prefix + ".index").value_or("") +
           ReadFile((*latest)->prefix + ".data-00000-of-00001").value_or("");
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/tfrecord_data_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  std::map<std::string, std::string> problems_;  // the problems that the last task has shown
};

// The tasks of a group compare the text of the agreement.
TEST_F(TfRecordData, TheAgreementCoversTheRecords) {
  config::TrainingConfig config = Config("tfrecord", "records", 30);
  const auto agreement = [&] {
    const auto source = LoadDataset(config, Split::kTrain);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? TrainingAgreement(config, **source) : "";
  };
  const std::string whole = agreement();
  EXPECT_EQ(agreement(), whole);
  config.data.train.files = {folder_ + "/part-1", folder_ + "/part-0"};
  EXPECT_NE(agreement(), whole);
}

TEST_F(TfRecordData, TrainsAsWithTheSameArrays) {
  ASSERT_EQ(Train(Config("npz", "arrays", 30)), OkStatus());
  ASSERT_EQ(Train(Config("tfrecord", "records", 30)), OkStatus());
  ASSERT_EQ(Train(Config("jsonl", "lines_dir", 30)), OkStatus());
  const std::string arrays = CheckpointIn("arrays");
  EXPECT_FALSE(arrays.empty());
  EXPECT_EQ(arrays, CheckpointIn("records"));
  EXPECT_EQ(arrays, CheckpointIn("lines_dir"));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(TfRecordData, ContinuesWhereARunStopped) {
  ASSERT_EQ(Train(Config("tfrecord", "whole", 30)), OkStatus());
  ASSERT_EQ(Train(Config("tfrecord", "parts", 17)), OkStatus());
  ASSERT_EQ(Train(Config("tfrecord", "parts", 30)), OkStatus());
  EXPECT_EQ(CheckpointIn("whole"), CheckpointIn("parts"));
}

TEST_F(TfRecordData, EvaluatesOnRecords) {
  config::TrainingConfig config = Config("tfrecord", "evaluated", 5);
  config.data.eval = config.data.train;
  RunningTask chief(config, Static({"chief", 0}, {{"chief", 0}}));
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/evaluated/eval"));
}

TEST_F(TfRecordData, EndsAtADamagedRecordOrLeavesItOut) {
  std::string damaged = *ReadFile(folder_ + "/part-1");
  ++damaged[30];
  Write("part-1", damaged);
  config::TrainingConfig config = Config("tfrecord", "damaged", 30);
  const Status failed = Train(config);
  EXPECT_EQ(failed.code(), StatusCode::kDataLoss);
  EXPECT_EQ(Message(failed),
            StrCat(folder_,
                   "/part-1: record at byte 0: the checksum of its payload is wrong; "
                   "replace the file, or set on_damaged: skip to leave out what is "
                   "damaged"));
  config.data.train.on_damaged = config::OnDamaged::kSkip;
  config.model_dir = folder_ + "/skipped";
  EXPECT_EQ(Train(config), OkStatus());
  EXPECT_EQ(problems_["data"],
            StrCat("1 damaged place is left out of the data; the first: ", folder_,
                   "/part-1: record at byte 0: the checksum of its payload is wrong"));
}

TEST_F(TfRecordData, ErrorsNameTheKey) {
  const auto error = [&](const std::string& path, const std::string& value) {
    config::TrainingConfig config = Config("tfrecord", "errors", 1);
    EXPECT_EQ(config::Override(config, path, value), OkStatus());
    return std::string(Message(LoadDataset(config, Split::kTrain).status()));
  };
  EXPECT_EQ(error("data.train.inputs", "points"),
            "data.train.features: expected the feature points, which the model's features needs, "
            "but it is missing; did you mean \"point\"?");
  EXPECT_EQ(error("data.train.targets", "weight"),
            "data.train.features.class: no input, target or sample weight uses this feature; "
            "remove it, or name it in inputs, targets or sample_weights");
  EXPECT_EQ(error("data.train.files", "[missing-*]"),
            "data.train: missing-*: no file matches this pattern");
}

}  // namespace
}  // namespace tfjob::train
