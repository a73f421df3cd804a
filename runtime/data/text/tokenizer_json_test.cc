// Tests the reader of tokenizer.json files. tests/interop compares the ids with those of the Python
// package `tokenizers`.
#include "runtime/data/text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/data/text/byte_pair.h"
#include "runtime/data/text/test_files.h"
#include "runtime/data/text/word_piece.h"

namespace tfjob::text {
namespace {

using nlohmann::json;
using testing::ByteVocabulary;
using testing::IdsOf;
using testing::TextFolder;
using Ids = std::vector<int64_t>;

json WordPieceFile() {
  return json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 4}, "padding": null,
    "added_tokens": [{"id": 0, "content": "[PAD]", "special": true},
                     {"id": 9, "content": "[MASK]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A"}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                         "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "film": 4, "##s": 5, ",": 6,
                        "cafe": 7}}})");
}

json BytePairFile() {
  json file = json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
              "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
              "merges": ["a b", ["Ġ", "ab"]]}})");
  file["model"]["vocab"] = ByteVocabulary({"ab", "Ġab"});
  return file;
}

class TokenizerJson : public ::testing::Test {
 protected:
  StatusOr<std::shared_ptr<const Tokenizer>> Read(const json& file) const {
    return ReadTokenizerJson(folder_.Write("tokenizer.json", file.dump()));
  }
  // Replaces the value at a JSON pointer of the file. Returns the error of reading the changed
  // file.
  std::string Error(json file, const std::string& pointer, const json& value) const {
    file[json::json_pointer(pointer)] = value;
    const Status error = Read(file).status();
    EXPECT_TRUE(error.ok() || absl::IsInvalidArgument(error)) << error;
    const std::string text(Message(error));
    const size_t name = text.find("tokenizer.json: ");
    return name == std::string::npos ? text : text.substr(name + 16);
  }

  const TextFolder folder_;
};

TEST_F(TokenizerJson, ReadsWordPiece) {
  const auto read = Read(WordPieceFile());
  ASSERT_TRUE(read.ok()) << read.status();
  const auto encoder = (*read)->MakeEncoder();
  EXPECT_EQ(IdsOf(*encoder, "Films, [SEP] café"), (Ids{4, 5, 6, 1, 1, 1, 7}));
  EXPECT_EQ((*read)->special().begin, 2);
  EXPECT_EQ((*read)->special().end, 3);
  EXPECT_EQ((*read)->special().padding, 0);
  EXPECT_EQ((*read)->size(), 10) << "[MASK] has the greatest id";
}

TEST_F(TokenizerJson, GivesTheSameIdsAsAVocabularyFile) {
  const std::string vocabulary =
      folder_.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\n##s\n,\ncafe\n");
  const auto lines = WordPieceTokenizer::Read({.vocabulary = vocabulary});
  const auto read = Read(WordPieceFile());
  ASSERT_TRUE(lines.ok() && read.ok());
  for (const char* text : {"film films filmss", "a film, café!", "", "FILM"})
    EXPECT_EQ(IdsOf(*(*read)->MakeEncoder(), text), IdsOf(*(*lines)->MakeEncoder(), text)) << text;
}

TEST_F(TokenizerJson, ReadsByteLevelBpe) {
  const auto read = Read(BytePairFile());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(IdsOf(*(*read)->MakeEncoder(), "ab ab b"), (Ids{256, 257, ' ', 'b'}));
  EXPECT_EQ((*read)->special().begin, std::nullopt);
  json spaced = BytePairFile();
  spaced["pre_tokenizer"]["add_prefix_space"] = true;
  const auto with_space = Read(spaced);
  ASSERT_TRUE(with_space.ok()) << with_space.status();
  EXPECT_EQ(IdsOf(*(*with_space)->MakeEncoder(), "ab ab"), (Ids{257, 257}));
  EXPECT_EQ(IdsOf(*(*with_space)->MakeEncoder(), " ab"), (Ids{257}));
  EXPECT_EQ(IdsOf(*(*with_space)->MakeEncoder(), ""), Ids{});
  EXPECT_NE((*with_space)->fingerprint(), (*read)->fingerprint());
}

TEST_F(TokenizerJson, ReadsTheSpecialTokensOfRoberta) {
  json file = BytePairFile();
  file["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", {"<s>", 300}}, {"sep", {"</s>", 302}}};
  file["padding"] = {{"pad_id", 301}};
  const auto read = Read(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->special().begin, 300);
  EXPECT_EQ((*read)->special().end, 302);
  EXPECT_EQ((*read)->special().padding, 301);
  EXPECT_EQ((*read)->size(), 303);
}

// If the special tokens change, a cache of ids must not be used any more.
TEST_F(TokenizerJson, TheFingerprintDependsOnTheSpecialTokens) {
  for (const json& file : {WordPieceFile(), BytePairFile()}) {
    json changed = file;
    changed["post_processor"] = {
        {"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
    const auto before = Read(file), after = Read(changed);
    ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
    EXPECT_NE((*before)->fingerprint(), (*after)->fingerprint());
    changed["padding"] = {{"pad_id", 3}};
    const auto padded = Read(changed);
    ASSERT_TRUE(padded.ok()) << padded.status();
    EXPECT_NE((*padded)->fingerprint(), (*after)->fingerprint());
  }
}

TEST_F(TokenizerJson, OnlyARegularFileIsRead) {
  const std::string pipe = folder_.Write("tokenizer.json", "") + ".pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadTokenizerJson(pipe).status(), InvalidArgument(pipe, ": expected a regular file"));
}

TEST_F(TokenizerJson, WhatIsNotSupportedIsNamed) {
  const json pieces = WordPieceFile(), pairs = BytePairFile();
  EXPECT_EQ(Error(pieces, "/model/type", "Unigram"),
            "model.type: expected WordPiece or BPE, which are supported, got \"Unigram\"");
  EXPECT_EQ(Error(pieces, "/normalizer/type", "Lowercase"),
            "normalizer.type: expected BertNormalizer, the only kind that is supported here, got "
            "\"Lowercase\"");
  EXPECT_EQ(Error(pieces, "/normalizer/clean_text", false),
            "normalizer.clean_text: expected true, the only choice that is supported, got false");
  EXPECT_EQ(Error(pieces, "/pre_tokenizer/type", "Whitespace"),
            "pre_tokenizer.type: expected BertPreTokenizer, the only kind that is supported here, "
            "got \"Whitespace\"");
  EXPECT_EQ(Error(pieces, "/model/max_input_chars_per_word", 200),
            "model.max_input_chars_per_word: expected 100, the only choice that is supported, got "
            "200");
  EXPECT_EQ(Error(pieces, "/added_tokens/1/special", false),
            "added_tokens[1]: expected special tokens only, which are no part of texts, got "
            "\"[MASK]\"");
  EXPECT_THAT(
      Error(pieces, "/post_processor/single/1", pieces["post_processor"]["single"][0]),
      ::testing::StartsWith("post_processor.single[1]: expected at most one special token"));
  EXPECT_EQ(Error(pieces, "/post_processor/type", "Sequence"),
            "post_processor.type: expected one of ByteLevel, BertProcessing, RobertaProcessing, "
            "TemplateProcessing, which are supported, got \"Sequence\"");
  EXPECT_EQ(Error(pieces, "/padding", {{"direction", "Left"}}),
            "padding.direction: expected \"Right\", the only choice that is supported, got "
            "\"Left\"");
  EXPECT_THAT(Error(pieces, "/padding", {{"pad_to_multiple_of", 8}}),
              ::testing::StartsWith("padding.pad_to_multiple_of: expected null"));
  EXPECT_THAT(Error(pairs, "/normalizer", {{"type", "NFC"}}),
              ::testing::StartsWith("normalizer: expected null"));
  EXPECT_THAT(Error(pairs, "/pre_tokenizer/use_regex", false),
              ::testing::StartsWith("pre_tokenizer.use_regex: expected true"));
  EXPECT_THAT(Error(pairs, "/model/dropout", 0.1),
              ::testing::StartsWith("model.dropout: expected null"));
  EXPECT_THAT(Error(pairs, "/model/byte_fallback", true),
              ::testing::StartsWith("model.byte_fallback: expected false"));
  EXPECT_THAT(Error(pairs, "/model/end_of_word_suffix", "</w>"),
              ::testing::StartsWith("model.end_of_word_suffix: expected \"\""));
}

TEST_F(TokenizerJson, WrongVocabulariesAreNamed) {
  const json pieces = WordPieceFile(), pairs = BytePairFile();
  EXPECT_EQ(Error(pieces, "/model/vocab/film", -1),
            "model.vocab: token \"film\": expected an id from 0 to 268435455, got -1");
  EXPECT_EQ(Error(pieces, "/model/unk_token", "<unk>"),
            "model.vocab: expected the token <unk>, which stands for unknown words, but it is "
            "missing");
  EXPECT_THAT(Error(pieces, "/model/vocab", json::array()),
              ::testing::StartsWith("model.vocab: expected an object that maps tokens to ids"));
  EXPECT_EQ(Error(pairs, "/model/merges/0", "a c"),
            "model.merges[0]: expected tokens of the vocabulary, got \"ac\"");
  EXPECT_EQ(Error(pairs, "/model/merges/1", 7), "model.merges[1]: expected two tokens, got 7");
  EXPECT_THAT(Error(pairs, "/model/vocab", {{"a", 0}}),
              ::testing::StartsWith("model.vocab: expected a token for every byte"));
  EXPECT_THAT(Error(pairs, "/model", 3), ::testing::HasSubstr("model.type"));
}

TEST_F(TokenizerJson, OtherFilesAreErrors) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadTokenizerJson(folder_.Write("tokenizer.json", "[UNK]\n")).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ReadTokenizerJson(folder_.Write("tokenizer.json", "[]")).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadTokenizerJson("/none/tokenizer.json").status()));
}

}  // namespace
}  // namespace tfjob::text
