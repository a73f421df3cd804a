// Tests the keys for batches by length, masked tokens and augmentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/config/training_config.h"

namespace tfjob::config {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

TrainingConfig With(const Keys& keys) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(
      "model: {layers: [Dense]}\nloss: mean_squared_error\nepochs: 1\n"
      "data: {train: {format: text, files: [a.txt], tokenize: {name: byte, max_length: 9}}}\n",
      "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  for (const auto& [key, value] : keys) EXPECT_EQ(Override(*config, key, value), OkStatus());
  return *std::move(config);
}

std::string BucketError(const Keys& keys) {
  Keys all;
  for (const auto& [key, value] : keys) {
    const bool section = key == "boundaries" || key == "batch_sizes" || key == "batch_tokens";
    all.emplace_back(section ? "data.bucket_by_length." + key : key, value);
  }
  return std::string(Message(Validate(With(all))));
}

TEST(BucketByLength, IsChecked) {
  EXPECT_EQ(BucketError({{"boundaries", "[2, 5]"}}), "");
  EXPECT_EQ(BucketError({{"boundaries", "[2, 5]"}, {"batch_sizes", "[8, 4, 2]"}}), "");
  EXPECT_EQ(BucketError({{"boundaries", "[2]"}, {"batch_tokens", "40"}}), "");
  EXPECT_EQ(BucketError({{"boundaries", "[2]"}, {"batch_size", "40"}}), "");
  EXPECT_EQ(BucketError({{"boundaries", "[5, 5]"}}),
            "data.bucket_by_length.boundaries: expected ascending lengths, got 5 after 5");
  EXPECT_EQ(BucketError({{"boundaries", "[2.5]"}}),
            "data.bucket_by_length.boundaries: expected whole numbers, got 2.5");
  EXPECT_EQ(BucketError({{"boundaries", "[2, 5]"}, {"batch_sizes", "[8, 4]"}}),
            "data.bucket_by_length.batch_sizes: expected 3 sizes, one for each boundary and one "
            "for longer examples, got 2");
  EXPECT_EQ(
      BucketError({{"boundaries", "[2]"}, {"batch_sizes", "[8, 4]"}, {"batch_tokens", "40"}}),
      "data.bucket_by_length.batch_tokens: expected either batch_sizes or batch_tokens, got both; "
      "remove one of the two");
  EXPECT_EQ(BucketError({{"boundaries", "[2]"}, {"batch_tokens", "40"}, {"batch_size", "4"}}),
            "batch_size: data.bucket_by_length already gives the sizes of batches; remove one of "
            "the two");
  EXPECT_EQ(BucketError({{"batch_tokens", "40"}}),
            "data.bucket_by_length.boundaries: expected the lengths that separate the buckets, "
            "such as [32, 64, 128], but they are missing; add them, or remove "
            "data.bucket_by_length.batch_tokens");
  EXPECT_EQ(BucketError({{"boundaries", "[2]"}, {"data.shuffle_buffer", "40"}}),
            "data.shuffle_buffer: cannot be combined with data.bucket_by_length, whose batches "
            "have examples of all files; remove one of the two");
}

TEST(BucketByLength, GivesTheSizesOfBatches) {
  const auto sizes = [](const Keys& keys, int tasks, bool together) {
    return BucketBatchSizes(With(keys), 9, 0, tasks, together);
  };
  using Sizes = std::vector<int64_t>;
  const std::pair<std::string, std::string> boundaries = {"data.bucket_by_length.boundaries",
                                                          "[2, 5]"};
  EXPECT_EQ(sizes({boundaries}, 2, false), (Sizes{32, 32, 32}));
  EXPECT_EQ(sizes({boundaries}, 2, true), (Sizes{64, 64, 64}));
  EXPECT_EQ(sizes({boundaries, {"global_batch_size", "10"}}, 2, true), (Sizes{10, 10, 10}));
  EXPECT_EQ(sizes({boundaries, {"global_batch_size", "10"}}, 2, false), (Sizes{5, 5, 5}));
  EXPECT_EQ(sizes({boundaries, {"data.bucket_by_length.batch_sizes", "[6, 4, 1]"}}, 2, true),
            (Sizes{12, 8, 2}));
  EXPECT_EQ(sizes({boundaries, {"data.bucket_by_length.batch_tokens", "12"}}, 1, false),
            (Sizes{6, 2, 1}));
  EXPECT_EQ(sizes({boundaries, {"data.bucket_by_length.batch_tokens", "1"}}, 1, false),
            (Sizes{1, 1, 1}));
}

std::string MaskError(Keys keys) {
  for (auto& [key, value] : keys) {
    if (key.find('.') == std::string::npos) key = "data.mask_tokens." + key;
  }
  return std::string(Message(Validate(With(keys))));
}

TEST(MaskTokens, AreChecked) {
  const std::pair<std::string, std::string> same = {"data.train.targets", "same_token"},
                                            mask = {"mask_token", "2"},
                                            size = {"vocabulary_size", "259"};
  EXPECT_EQ(MaskError({same, mask, size, {"special_tokens", "[0, 1]"}, {"rate", "0.2"}}), "");
  EXPECT_EQ(MaskError({same}), "") << "the labels may be the same tokens without masks";
  EXPECT_EQ(MaskError({mask, size}),
            "data.train.targets: expected same_token with data.mask_tokens; add it, or remove "
            "data.mask_tokens");
  EXPECT_EQ(MaskError({same, mask}),
            "data.mask_tokens.vocabulary_size: expected the number of ids, from which random "
            "tokens are drawn, but it is missing");
  EXPECT_EQ(MaskError({same, size}),
            "data.mask_tokens.mask_token: expected the id of the token that replaces others, such "
            "as that of [MASK], but it is missing");
  EXPECT_EQ(MaskError({same, {"mask_token", "259"}, size}),
            "data.mask_tokens.mask_token: expected an id below vocabulary_size (259), got 259");
  EXPECT_EQ(MaskError({same, mask, size, {"special_tokens", "[300]"}}),
            "data.mask_tokens.special_tokens: expected ids below vocabulary_size (259), got 300");
  EXPECT_EQ(MaskError({same, mask, size, {"rate", "0"}}),
            "data.mask_tokens.rate: expected a share above 0 and at most 1, got 0");
}

TEST(Texts, NeedAFolderAndATokenizer) {
  const Keys texts = {{"data.train.format", "texts"}, {"data.train.files", "[]"}};
  const auto error = [&](const Keys& more) {
    Keys all = texts;
    all.insert(all.end(), more.begin(), more.end());
    return std::string(Message(Validate(With(all))));
  };
  EXPECT_EQ(error({{"data.train.folder", "reviews"}}), "");
  EXPECT_EQ(error({}),
            "data.train.folder: expected a folder that contains a folder of text files for each "
            "class, but it is missing");
  TrainingConfig without = With(texts);
  without.data.train.folder = "reviews";
  without.data.train.tokenize.reset();
  EXPECT_EQ(Message(Validate(without)),
            "data.train.tokenize: expected a tokenizer, such as {name: byte, max_length: 256}, but "
            "it is missing");
  EXPECT_EQ(error({{"data.train.folder", "reviews"}, {"data.train.classes", "[a, a]"}}),
            "data.train.classes: expected each class once, got a twice");
  EXPECT_THAT(error({{"data.train.folder", "reviews"}, {"data.train.height", "3"}}),
              ::testing::StartsWith("data.train.height: belongs to data.train.format images"));
}

TEST(CacheFile, ExcludesACacheInMemory) {
  EXPECT_EQ(Validate(With({{"data.train.cache_file", "a.cache"}})), OkStatus());
  EXPECT_EQ(Message(Validate(
                With({{"data.train.cache_file", "a.cache"}, {"data.train.cache", "memory"}}))),
            "data.train.cache_file: expected either cache: memory or cache_file, got both; remove "
            "one of the two");
}

TEST(Augment, CannotBeCombinedWithTheKeysForTokens) {
  const std::pair<std::string, std::string> layers = {"data.augment", "[RandomFlip]"};
  EXPECT_EQ(Validate(With({layers})), OkStatus());
  EXPECT_EQ(Message(Validate(With({layers, {"data.bucket_by_length.boundaries", "[4]"}}))),
            "data.augment: cannot be combined with data.bucket_by_length; remove one of the two");
  EXPECT_EQ(Message(Validate(With({layers,
                                   {"data.train.targets", "same_token"},
                                   {"data.mask_tokens.mask_token", "3"},
                                   {"data.mask_tokens.vocabulary_size", "9"}}))),
            "data.augment: cannot be combined with data.mask_tokens; remove one of the two");
}

}  // namespace
}  // namespace tfjob::config
