// Tests the keys of text: tokenizers, vocabularies and lines of text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/config/training_config.h"

namespace tfjob::config {
namespace {

constexpr char kTextFile[] = R"(
model: {layers: [{Dense: {units: 1}}]}
loss: mean_squared_error
max_steps: 1
data:
  train:
    format: text
    files: [a.txt]
    tokenize: {name: byte, max_length: 8}
)";

// Returns the error of the training file with these values of keys, each of which replaces or adds
// a key. "" removes the tokenizer.
std::string TextError(const std::vector<std::pair<std::string, std::string>>& keys) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kTextFile, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  for (const auto& [key, value] : keys) {
    if (value.empty()) config->data.train.tokenize.reset();
    if (value.empty()) continue;
    const Status set = Override(*config, "data.train." + key, value);
    if (!set.ok()) return std::string(Message(set));
  }
  return std::string(Message(Validate(*config)));
}

std::string TokenizeError(const std::string& value) {
  const std::string error = TextError({{"tokenize", value}});
  constexpr std::string_view kAt = "data.train.tokenize";
  return error.starts_with(kAt) ? error.substr(kAt.size()) : error;
}

std::string JsonFeatureError(const std::string& value) {
  const std::string error =
      TextError({{"format", "jsonl"}, {"tokenize", ""}, {"features", "{x: " + value + "}"}});
  constexpr std::string_view kAt = "data.train.features.x";
  return error.starts_with(kAt) ? error.substr(kAt.size()) : error;
}

TEST(Tokenize, IsChecked) {
  EXPECT_EQ(TokenizeError("{name: byte, max_length: 8, truncate: true}"), "");
  EXPECT_EQ(TokenizeError("{name: wordpiece, vocabulary: v.txt, max_length: 8, lower_case: false, "
                          "strip_accents: true, add_special_tokens: false}"),
            "");
  EXPECT_EQ(TokenizeError("{name: bpe, vocabulary: v.json, merges: m.txt, max_length: 8}"), "");
  EXPECT_EQ(TokenizeError("{name: words, max_length: 8}"),
            ".name: expected one of wordpiece, bpe, byte, tokenizer_json, got \"words\"");
  EXPECT_EQ(TokenizeError("{max_length: 8}"),
            ".name: expected one of wordpiece, bpe, byte, tokenizer_json, but it is missing");
  EXPECT_EQ(TokenizeError("{name: byte}"),
            ".max_length: expected the number of tokens to which texts are padded, but it is "
            "missing");
  EXPECT_EQ(TokenizeError("{name: byte, max_length: 0}"),
            ".max_length: expected a length from 1 to 268435456, got 0");
  EXPECT_EQ(TokenizeError("{name: wordpiece, max_length: 8}"),
            ".vocabulary: expected a file, but it is missing");
  EXPECT_EQ(TokenizeError("{name: bpe, vocabulary: v.json, max_length: 8}"),
            ".merges: expected a file, but it is missing");
  EXPECT_EQ(TokenizeError("{name: byte, vocabulary: v.txt, max_length: 8}"),
            ".vocabulary: belongs to name wordpiece, bpe, but name is byte; remove one of the two");
  EXPECT_EQ(TokenizeError("{name: byte, lower_case: true, max_length: 8}"),
            ".lower_case: belongs to name wordpiece, but name is byte; remove one of the two");
  EXPECT_EQ(TokenizeError("{name: byte, maxlength: 8}"),
            ".maxlength: unknown key; did you mean \"max_length\"?");
}

TEST(Tokenize, IsPrinted) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kTextFile, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const Json written = {{"name", "wordpiece"}, {"vocabulary", "v.txt"},
                        {"lower_case", false}, {"strip_accents", true},
                        {"truncate", true},    {"add_special_tokens", false},
                        {"max_length", 12}};
  ASSERT_TRUE(Override(*config, "data.train.tokenize", written.dump()).ok());
  EXPECT_EQ(TrainingConfigToJson(*config)["data"]["train"]["tokenize"], written);
}

TEST(TextFormat, NeedsFilesAndATokenizer) {
  EXPECT_EQ(TextError({}), "");
  EXPECT_EQ(TextError({{"targets", "next_token"}}), "");
  EXPECT_EQ(TextError({{"files", "[]"}}),
            "data.train.files: expected a list of text files, but it is missing");
  EXPECT_EQ(TextError({{"tokenize", ""}}),
            "data.train.tokenize: expected a tokenizer, such as {name: byte, max_length: 256}, but "
            "it is missing");
  EXPECT_TRUE(TextError({{"targets", "label"}})
                  .starts_with("data.train.targets: expected next_token or same_token, since"));
  EXPECT_EQ(TextError({{"format", "jsonl"}, {"features", "{x: {dtype: int64, shape: []}}"}}),
            "data.train.tokenize: belongs to data.train.format text, texts, but data.train.format "
            "is jsonl; remove one of the two");
}

TEST(TextFeatures, AreChecked) {
  EXPECT_EQ(JsonFeatureError("{dtype: string, tokenize: {name: byte, max_length: 8}}"), "");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [], vocabulary: [a, b], num_oov_indices: 0}"),
            "");
  EXPECT_EQ(JsonFeatureError("{dtype: string, max_length: 3, vocabulary: v.txt, default_value: 7}"),
            "");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [8], tokenize: {name: byte, max_length: 8}}"),
            ".shape: cannot be combined with tokenize, whose max_length gives the shape; remove "
            "it");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [1], max_length: 3, vocabulary: [a]}"),
            ".max_length: cannot be combined with shape and a vocabulary; remove one of the two");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [], vocabulary: []}"),
            ".vocabulary: expected a list of terms, or a file with one term per line, got a list");
  EXPECT_EQ(JsonFeatureError("{dtype: int64, shape: [], vocabulary: [a]}"),
            ".vocabulary: belongs to dtype string, but dtype is int64; remove one of the two");
  EXPECT_EQ(JsonFeatureError("{dtype: int64, shape: [], num_oov_indices: 1}"),
            ".num_oov_indices: belongs to vocabulary, which is not set; set it, or remove the key");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [], vocabulary: [a], num_oov_indices: -1}"),
            ".num_oov_indices: expected a number of ids from 0 to 16777216, got -1");
  EXPECT_EQ(JsonFeatureError("{dtype: string, shape: [], vocabulary: [a], default_value: 0.5}"),
            ".default_value: expected an integer, which is an id, got 0.5");
}

std::string CsvError(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::vector<std::pair<std::string, std::string>> all = {
      {"format", "csv"}, {"files", "[]"}, {"tokenize", ""}, {"file", "a.csv"}};
  all.insert(all.end(), keys.begin(), keys.end());
  return TextError(all);
}

TEST(CsvFeatures, AreChecked) {
  const std::string numbers =
      "{x: {dtype: float32, columns: [a, b]}, y: {dtype: int64, shape: []}}";
  EXPECT_EQ(CsvError({{"features", numbers}, {"inputs", "x"}, {"targets", "\"y\""}}), "");
  EXPECT_EQ(CsvError({}), "");
  EXPECT_EQ(CsvError({{"inputs", "x"}}),
            "data.train.inputs: belongs to data.train.features, which is not set; set it, or "
            "remove the key");
  EXPECT_EQ(CsvError({{"features", numbers}, {"label_column", "a"}}),
            "data.train.label_column: cannot be combined with features; name the feature with the "
            "labels in targets instead");
  EXPECT_EQ(CsvError({{"features", numbers}, {"header", "false"}}),
            "data.train.header: expected true, because features have the names in the first row, "
            "got false");
  EXPECT_EQ(CsvError({{"features", "{x: {dtype: float32, shape: [2]}}"}}),
            "data.train.features.x.shape: expected [], for the number of columns, got [2]; name "
            "several columns in columns");
  EXPECT_EQ(CsvError({{"features", "{x: {dtype: float32, max_length: 2}}"}}),
            "data.train.features.x.max_length: cannot be combined with format csv, whose fields "
            "are single values; remove it");
  EXPECT_EQ(JsonFeatureError("{dtype: float32, columns: [a]}"),
            ".columns: belongs to format csv; remove it");
}

TEST(TextFeatures, ArePrinted) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kTextFile, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const Json written = {
      {"colour",
       {{"dtype", "string"},
        {"shape", Json::array()},
        {"vocabulary", {"red", "green"}},
        {"num_oov_indices", 2}}},
      {"text", {{"dtype", "string"}, {"tokenize", {{"name", "byte"}, {"max_length", 4}}}}}};
  ASSERT_TRUE(Override(*config, "data.train.format", "jsonl").ok());
  ASSERT_TRUE(Override(*config, "data.train.features", written.dump()).ok());
  EXPECT_EQ(TrainingConfigToJson(*config)["data"]["train"]["features"], written);
}

}  // namespace
}  // namespace tfjob::config
