#include "runtime/data/text/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/fnv1a.h"
#include "runtime/base/json.h"
#include "runtime/base/json_split.h"
#include "runtime/data/text/byte_pair.h"
#include "runtime/data/text/merge_table.h"
#include "runtime/data/text/text_lines.h"
#include "runtime/data/text/text_quote.h"
#include "runtime/data/text/token_ids.h"
#include "runtime/data/text/word_piece.h"

namespace tfjob::text {
namespace {

// The maximum size of the part of a file that is parsed to a DOM. A DOM needs about 100 times as
// much memory as the text.
constexpr size_t kMostSettingsBytes = 2 << 20;

struct TokenizerFile {
  Json settings;                        // all settings except the next two
  std::string_view vocabulary, merges;  // JSON; empty if the file has none
};

StatusOr<TokenizerFile> ParseSettings(const std::string& content, const std::string& path) {
  const std::string_view model = FindJsonMember(content, "model");
  TokenizerFile file{.settings = {},
                     .vocabulary = FindJsonMember(model, "vocab"),
                     .merges = FindJsonMember(model, "merges")};
  const size_t bytes = content.size() - file.vocabulary.size() - file.merges.size();
  if (bytes > kMostSettingsBytes) {
    return InvalidArgument(path, ": expected at most ", kMostSettingsBytes, " bytes outside of ",
                           "model.vocab and model.merges, got ", bytes);
  }
  std::string settings = content;
  for (const std::string_view part : {file.vocabulary, file.merges}) {
    if (part.empty()) continue;
    // Keep the line breaks, so errors name the right line.
    const auto begin = settings.begin() + (part.data() - content.data());
    std::replace_if(
        begin, begin + static_cast<std::ptrdiff_t>(part.size()), [](char c) { return c != '\n'; },
        ' ');
    *begin = '0';
  }
  ASSIGN_OR_RETURN(file.settings, ParseJson(settings, path));
  return file;
}

// Checks the member `type` of a part of the file.
Status ExpectType(const JsonField& field, std::string_view type) {
  ASSIGN_OR_RETURN(const std::string found, field["type"].String());
  if (found == type) return OkStatus();
  return field["type"].Mismatch(StrCat(type, ", the only kind that is supported here"));
}

// Checks that a setting is absent, null, or `usual`.
Status ExpectUsual(const JsonField& field, const Json& usual) {
  if (!field.present() || *field.value() == usual) return OkStatus();
  return field.Mismatch(StrCat(PrintJson(usual), ", the only choice that is supported"));
}

StatusOr<int64_t> ReadId(const JsonField& field) {
  ASSIGN_OR_RETURN(const int64_t id, field.Int());
  if (id >= 0 && id <= MergeTable::kMostId) return id;
  return field.Mismatch(StrCat("an id from 0 to ", MergeTable::kMostId));
}

// ---- the tokens that are added to text

// Reads the id from a pair [TOKEN, ID].
StatusOr<int64_t> ReadPair(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  if (elements.size() != 2) return field.Mismatch("a token and its id");
  return ReadId(elements[1]);
}

// Returns the id of a piece of a template, {"SpecialToken": {"id": NAME}}.
StatusOr<int64_t> ReadTemplateToken(const JsonField& piece, const JsonField& tokens) {
  const JsonField name = piece["SpecialToken"]["id"];
  ASSIGN_OR_RETURN(const std::string token, name.String());
  const JsonField ids = tokens[token]["ids"];
  ASSIGN_OR_RETURN(const std::vector<JsonField> list, ids.Elements());
  if (list.size() != 1) return ids.Mismatch("a list of one id");
  return ReadId(list[0]);
}

// Reads a template such as [CLS] A [SEP].
Status ReadTemplate(const JsonField& processor, SpecialTokens& special) {
  const JsonField single = processor["single"];
  ASSIGN_OR_RETURN(const std::vector<JsonField> pieces, single.Elements());
  bool text = false;
  for (const JsonField& piece : pieces) {
    if (piece["Sequence"].present()) {
      if (text) return piece.Mismatch("the text once");
      text = true;
      continue;
    }
    std::optional<int64_t>& place = text ? special.end : special.begin;
    if (place) {
      return piece.Mismatch(
          "at most one special token before the text and one behind it, which "
          "are supported");
    }
    ASSIGN_OR_RETURN(place, ReadTemplateToken(piece, processor["special_tokens"]));
  }
  return text ? OkStatus() : single.Mismatch("a template that contains the text");
}

Status ReadPostProcessor(const JsonField& processor, SpecialTokens& special) {
  if (!processor.present()) return OkStatus();
  ASSIGN_OR_RETURN(const std::string type, processor["type"].String());
  if (type == "ByteLevel") return OkStatus();  // affects only offsets
  if (type == "TemplateProcessing") return ReadTemplate(processor, special);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    ASSIGN_OR_RETURN(special.begin, ReadPair(processor["cls"]));
    ASSIGN_OR_RETURN(special.end, ReadPair(processor["sep"]));
    return OkStatus();
  }
  return processor["type"].Mismatch(
      "one of ByteLevel, BertProcessing, RobertaProcessing, TemplateProcessing, which are "
      "supported");
}

// ---- the vocabulary

struct AddedTokens {
  std::optional<int64_t> padding;
  int64_t size = 0;  // every id is below it
};

bool IsPadding(std::string_view token) {
  return token == "[PAD]" || token == "<pad>" || token == "<|endoftext|>";
}

StatusOr<AddedTokens> ReadAddedTokens(const JsonField& field) {
  AddedTokens added;
  ASSIGN_OR_RETURN(const std::vector<JsonField> list, field.Elements());
  for (const JsonField& token : list) {
    ASSIGN_OR_RETURN(const int64_t id, ReadId(token["id"]));
    ASSIGN_OR_RETURN(const std::string content, token["content"].String());
    ASSIGN_OR_RETURN(const bool special, token["special"].BoolOr(false));
    if (!special) {
      return InvalidArgument(token.path(), ": expected special tokens only, which are no part of ",
                             "texts, got ", Quote(content));
    }
    if (IsPadding(content) && !added.padding) added.padding = id;
    added.size = std::max(added.size, id + 1);
  }
  return added;
}

Status ReadPadding(const JsonField& root, SpecialTokens& special, AddedTokens& added) {
  RETURN_IF_ERROR(ExpectUsual(root["padding"]["direction"], "Right"));
  RETURN_IF_ERROR(ExpectUsual(root["padding"]["pad_to_multiple_of"], Json()));
  special.padding = added.padding;
  const JsonField id = root["padding"]["pad_id"];
  if (!id.present()) return OkStatus();
  ASSIGN_OR_RETURN(special.padding, ReadId(id));
  return OkStatus();
}

// ---- models

StatusOr<BasicOptions> ReadBertNormalizer(const JsonField& normalizer) {
  if (!normalizer.present()) return normalizer.Mismatch("BertNormalizer");
  RETURN_IF_ERROR(ExpectType(normalizer, "BertNormalizer"));
  RETURN_IF_ERROR(ExpectUsual(normalizer["clean_text"], true));
  RETURN_IF_ERROR(ExpectUsual(normalizer["handle_chinese_chars"], true));
  BasicOptions options;
  ASSIGN_OR_RETURN(options.lower_case, normalizer["lowercase"].BoolOr(true));
  ASSIGN_OR_RETURN(options.strip_accents, normalizer["strip_accents"].BoolOr(options.lower_case));
  return options;
}

StatusOr<std::shared_ptr<const Tokenizer>> ReadWordPiece(const TokenizerFile& file,
                                                         const SpecialTokens& special,
                                                         const AddedTokens& added) {
  const JsonField root(file.settings), model = root["model"];
  ASSIGN_OR_RETURN(const BasicOptions words, ReadBertNormalizer(root["normalizer"]));
  RETURN_IF_ERROR(ExpectType(root["pre_tokenizer"], "BertPreTokenizer"));
  RETURN_IF_ERROR(ExpectUsual(model["max_input_chars_per_word"],
                              static_cast<int64_t>(BasicTokenizer::kMostCharacters)));
  ASSIGN_OR_RETURN(const std::string unknown, model["unk_token"].String());
  ASSIGN_OR_RETURN(const std::string continuation,
                   model["continuing_subword_prefix"].StringOr("##"));
  if (continuation.empty() || continuation.size() > kMostContinuationBytes) {
    return model["continuing_subword_prefix"].Mismatch(
        StrCat("a prefix of 1 to ", kMostContinuationBytes, " bytes"));
  }
  const StatusOr<TokenIds> ids = TokenIds::Parse(file.vocabulary);
  if (!ids.ok()) return Annotate(ids.status(), "model.vocab");
  WordPieceTokens tokens{
      .unknown = unknown,
      .continuation = continuation,
      .special = special,
      .size = std::max(ids->size(), added.size),
      .hash = Fnv1a().AddWord(ids->hash()).Add(unknown).Add("\n").Add(continuation).hash()};
  for (const auto& [token, id] : ids->tokens()) tokens.terms.push_back({.text = token, .id = id});
  auto made = WordPieceTokenizer::Make(tokens, words);
  return made.ok() ? std::move(made) : Annotate(made.status(), "model.vocab");
}

StatusOr<std::shared_ptr<const Tokenizer>> ReadBytePairs(const TokenizerFile& file,
                                                         const SpecialTokens& special,
                                                         const AddedTokens& added) {
  const JsonField root(file.settings), model = root["model"], before = root["pre_tokenizer"];
  if (root["normalizer"].present()) {
    return root["normalizer"].Mismatch("null, the only choice that is supported with BPE");
  }
  if (!before.present()) return before.Mismatch("ByteLevel");
  RETURN_IF_ERROR(ExpectType(before, "ByteLevel"));
  RETURN_IF_ERROR(ExpectUsual(before["use_regex"], true));
  if (model["dropout"].present()) return model["dropout"].Mismatch("null: no dropout");
  RETURN_IF_ERROR(ExpectUsual(model["byte_fallback"], false));
  RETURN_IF_ERROR(ExpectUsual(model["ignore_merges"], false));
  RETURN_IF_ERROR(ExpectUsual(model["continuing_subword_prefix"], ""));
  RETURN_IF_ERROR(ExpectUsual(model["end_of_word_suffix"], ""));
  BytePairOptions options{.special = special, .least_size = added.size};
  ASSIGN_OR_RETURN(options.add_prefix_space, before["add_prefix_space"].BoolOr(true));
  ASSIGN_OR_RETURN(MergeTable table, MergeTable::Parse(file.vocabulary, file.merges, "model"));
  return std::make_shared<const BytePairTokenizer>(std::move(table), options);
}

StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizerOf(const TokenizerFile& file) {
  const JsonField root(file.settings);
  if (!root.IsObject()) return root.Mismatch("an object");
  SpecialTokens special;
  RETURN_IF_ERROR(ReadPostProcessor(root["post_processor"], special));
  ASSIGN_OR_RETURN(AddedTokens added, ReadAddedTokens(root["added_tokens"]));
  RETURN_IF_ERROR(ReadPadding(root, special, added));
  for (const std::optional<int64_t>& id : {special.begin, special.end, special.padding})
    added.size = std::max(added.size, id.value_or(-1) + 1);
  const JsonField type = root["model"]["type"];
  ASSIGN_OR_RETURN(const std::string model, type.String());
  if (model == "WordPiece") return ReadWordPiece(file, special, added);
  if (model == "BPE") return ReadBytePairs(file, special, added);
  return type.Mismatch("WordPiece or BPE, which are supported");
}

}  // namespace

StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizerJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadSmallFile(path, kMostTokenizerBytes));
  ASSIGN_OR_RETURN(const TokenizerFile file, ParseSettings(content, path));
  auto read = ReadTokenizerOf(file);
  return read.ok() ? std::move(read) : Annotate(read.status(), path);
}

}  // namespace tfjob::text
