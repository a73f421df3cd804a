// Trains on texts from folders with a subfolder per class, on batches of texts of similar lengths,
// and on masked tokens.
#include <gtest/gtest.h>
#include <tfjob/tfjob.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tj = tfjob;

namespace {

class TextDataset : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string Write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path;
  }
  // Returns a model that predicts the class of a text, one of two, from its bytes.
  static tj::CompiledModel Classifier() {
    return tj::Session(tj::Strategy::OneDevice(), {.seed = 1, .threads = 1})
        .Compile(
            tj::Sequential({tj::Input{.shape = {-1}, .dtype = "int64"},
                            tj::Embedding{.input_dim = 259, .output_dim = 8, .mask_zero = true},
                            tj::GlobalAveragePooling1D{}, tj::Dense{.units = 2}}),
            {.optimizer = tj::Adam{.learning_rate = 0.05},
             .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
             .metrics = {"accuracy"}})
        .value();
  }
  tj::data::Texts Texts() const {
    for (int i = 0; i < 40; ++i) {
      Write("texts/" + std::string(i % 2 == 0 ? "a" : "b") + "/" + std::to_string(i),
            std::string(static_cast<size_t>(1 + i % 11), i % 2 == 0 ? 'x' : 'y'));
    }
    return {.folder = folder_ + "/texts", .tokenize = {.name = "byte", .max_length = 12}};
  }

  const std::string folder_ = testing::TempDir() + "/text_dataset_test_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TextDataset, FoldersOfTextsTrainAClassifier) {
  tj::CompiledModel model = Classifier();
  const auto history =
      model.Fit(Texts(), {.batch_size = 8, .epochs = 20, .verbose = tj::Verbose::kSilent});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(model.Evaluate(Texts()).value()["accuracy"], 1);
}

TEST_F(TextDataset, BatchesByLengthTrainTheSameModel) {
  tj::CompiledModel model = Classifier();
  const tj::BucketByLength buckets = {.boundaries = {4, 8}, .batch_sizes = {8, 4, 2}};
  tj::FitOptions options = {.epochs = 20, .verbose = tj::Verbose::kSilent};
  options.bucket_by_length = buckets;
  const auto history = model.Fit(Texts(), options);
  ASSERT_TRUE(history.ok()) << history.status();
  const double loss = model.Evaluate(Texts()).value()["loss"];
  EXPECT_NEAR(model.Evaluate(Texts(), {.bucket_by_length = buckets}).value()["loss"], loss, 1e-5)
      << "padding does not count";
  EXPECT_LT(loss, 0.1);
  options.bucket_by_length->batch_sizes = {1};
  EXPECT_NE(model.Fit(Texts(), options)
                .status()
                .message()
                .find("data.bucket_by_length.batch_sizes: expected 3 sizes"),
            std::string::npos);
}

TEST_F(TextDataset, MaskedTokensArePredicted) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "abcabc\n";
  const tj::Dataset text =
      tj::data::Text{.files = {Write("a.txt", lines)},
                     .tokenize = {.name = "byte", .max_length = 6, .add_special_tokens = false},
                     .same_token = true};
  tj::CompiledModel model =
      tj::Session(tj::Strategy::OneDevice(), {.seed = 1, .threads = 1})
          .Compile(tj::Sequential({tj::Input{.shape = {6}, .dtype = "int64"},
                                   tj::Embedding{.input_dim = 259, .output_dim = 16},
                                   tj::Conv1D{.filters = 32, .kernel_size = {5}, .padding = "same"},
                                   tj::Dense{.units = 259}}),
                   {.optimizer = tj::Adam{.learning_rate = 0.01},
                    .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
                    .weighted_metrics = {"accuracy"}})
          .value();
  const tj::MaskTokens mask = {.mask_token = 2, .vocabulary_size = 259, .special_tokens = {0, 1}};
  tj::FitOptions options = {.batch_size = 10, .epochs = 60, .verbose = tj::Verbose::kSilent};
  options.mask_tokens = mask;
  const auto history = model.Fit(text, options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_GE(model.Evaluate(text, {.mask_tokens = mask}).value()["accuracy"], 0.8);
}

}  // namespace
