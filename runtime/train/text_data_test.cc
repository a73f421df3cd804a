// Tests training on text, from the training file to the values of a batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "runtime/train/job/data_text.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

class TextData : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
    return folder_ + "/" + name;
  }

  // Returns a training file for a model that predicts the next byte at each position.
  config::TrainingConfig NextByte(const std::string& source) const {
    return Parsed(
        StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 6], dtype: int64}}, ",
               "{Embedding: {input_dim: 259, output_dim: 16}}, {Dense: {units: 259}}]}\n",
               "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
               "optimizer: {name: adam, learning_rate: 0.05}\n", "data: {train: {", source,
               "}}\nbatch_size: 4\nmax_steps: 300\nlog_step_count_steps: 10\nmodel_dir: ", folder_,
               "/model\n"));
  }

  static config::TrainingConfig Parsed(const std::string& text) {
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config::Validate(*config).ok()) << config::Validate(*config);
    return *std::move(config);
  }

  // Trains, and returns the last loss that the task reports.
  double LossAfter(const config::TrainingConfig& config) {
    RunningTask chief(config, Static({"chief", 0}, {{"chief", 0}}));
    EXPECT_EQ(chief.End(), OkStatus());
    return chief.Progress().loss.value_or(1e9);
  }

  static std::string LoadError(const config::TrainingConfig& config) {
    return std::string(LoadDataset(config, Split::kTrain).status().message());
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/text_data_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(TextData, LinesTeachTheNextByte) {
  const std::string path = Write("a.txt", "abcabc\nbcabca\ncabcab\nabcab\n");
  const config::TrainingConfig config =
      NextByte(StrCat("format: text, files: [", path, "], tokenize: {name: byte, max_length: 6}"));
  EXPECT_LT(LossAfter(config), 0.6) << "at first, it is near 5";
}

TEST_F(TextData, IsDescribed) {
  const std::string path = Write("a.txt", "abc\nbc\n");
  const StatusOr<std::string> text = DescribeData(
      NextByte(StrCat("format: text, files: [", path, "], tokenize: {name: byte, max_length: 6}")),
      {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ::testing::HasSubstr(StrCat("source: text: ", path, "; 7 bytes")));
  EXPECT_THAT(*text, ::testing::HasSubstr("fields of an example: features int64 [6], labels int64 "
                                          "[6], sample_weights float32 [6]"));
}

TEST_F(TextData, MissingSpecialTokensAndFilesAreNamed) {
  const std::string path = Write("a.txt", "abc\n"), vocabulary = Write("v.txt", "[UNK]\na\n");
  const std::string source = StrCat("format: text, files: [", path, "], tokenize: {");
  EXPECT_EQ(LoadError(NextByte(
                StrCat(source, "name: wordpiece, vocabulary: ", vocabulary, ", max_length: 6}"))),
            StrCat("data.train.tokenize: expected the token [CLS] in ", vocabulary,
                   ", but it is missing; add it, or set add_special_tokens: false"));
  EXPECT_THAT(LoadError(NextByte(StrCat(source, "name: wordpiece, vocabulary: ", folder_,
                                        "/none.txt, max_length: 6}"))),
              ::testing::HasSubstr("data.train.tokenize: open " + folder_ + "/none.txt"));
}

TEST_F(TextData, SpecialTokensMustFit) {
  const std::string path = Write("a.txt", "abc\n");
  const std::string vocabulary = Write("v.txt", "[UNK]\n[CLS]\n[SEP]\n");
  EXPECT_EQ(LoadError(NextByte(StrCat("format: text, files: [", path,
                                      "], tokenize: {name: wordpiece, vocabulary: ", vocabulary,
                                      ", max_length: 1}"))),
            "data.train.tokenize: expected a max_length of at least 2, for the special tokens, got "
            "1; increase it, or set add_special_tokens: false");
}

TEST_F(TextData, TablesWithOtherVocabulariesHaveOtherFingerprints) {
  const std::string path = Write("a.csv", "x,sort\n1,up\n2,down\n");
  const auto fingerprint = [&](const std::string& vocabulary) {
    const config::TrainingConfig config = Parsed(StrCat(
        "model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 2}}]}\n",
        "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
        "data: {train: {format: csv, file: ", path, ", features: {x: {dtype: float32, shape: []}, ",
        "sort: {dtype: string, shape: [], vocabulary: ", vocabulary, ", num_oov_indices: 0}}, ",
        "inputs: x, targets: sort}}\nbatch_size: 2\nmax_steps: 1\nmodel_dir: ", folder_,
        "/model\n"));
    const auto source = LoadDataset(config, Split::kTrain);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->fingerprint() : 0;
  };
  EXPECT_NE(fingerprint("[up, down]"), 0u);
  EXPECT_EQ(fingerprint("[up, down]"), fingerprint("[up, down]"));
  EXPECT_NE(fingerprint("[up, down]"), fingerprint("[down, up]"));
}

TEST_F(TextData, FeaturesOfJsonLinesAreTextsAndTerms) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += i % 2 == 0 ? "{\"text\": \"good film\", \"sort\": \"up\"}\n"
                        : "{\"text\": \"bad film\", \"sort\": \"down\"}\n";
  }
  const std::string path = Write("a.jsonl", lines);
  const std::string vocabulary = Write("v.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\nbad\nfilm\n");
  const config::TrainingConfig config = Parsed(StrCat(
      "model: {layers: [{InputLayer: {batch_shape: [null, 5], dtype: int64}}, {Embedding: "
      "{input_dim: 7, output_dim: 4}}, {GlobalAveragePooling1D: {}}, {Dense: {units: 2}}]}\n",
      "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
      "optimizer: {name: adam, learning_rate: 0.1}\n", "data: {train: {format: jsonl, files: [",
      path, "], features: {text: {dtype: string, tokenize: {name: wordpiece, vocabulary: ",
      vocabulary, ", max_length: 5}}, sort: {dtype: string, shape: [], vocabulary: [up, down], ",
      "num_oov_indices: 0}}, inputs: text, targets: sort}}\n",
      "batch_size: 8\nmax_steps: 40\nlog_step_count_steps: 10\nmodel_dir: ", folder_, "/model\n"));
  EXPECT_LT(LossAfter(config), 0.2) << "at first, it is near log(2)";
}

}  // namespace
}  // namespace tfjob::train
