#include "runtime/config/tokenize.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/base/did_you_mean.h"

namespace tfjob::config {
namespace {

const std::vector<std::string> kTokenizers = {"wordpiece", "bpe", "byte", "tokenizer_json"};
const std::vector<std::string> kTokenizeKeys = {
    "name",          "vocabulary",         "merges",     "file",    "lower_case",
    "strip_accents", "add_special_tokens", "max_length", "truncate"};

constexpr int64_t kMostTokens = int64_t{1} << 28;  // per string

StatusOr<std::string> ReadName(const JsonField& field) {
  const StatusOr<std::string> name = field.String();
  if (name.ok() && std::ranges::find(kTokenizers, *name) != kTokenizers.end()) return name;
  return field.Mismatch("one of wordpiece, bpe, byte, tokenizer_json");
}

Status ReadMember(const std::string& name, const JsonField& member, TokenizeConfig& to) {
  if (name == "name") {
    ASSIGN_OR_RETURN(to.name, ReadName(member));
  } else if (name == "vocabulary") {
    ASSIGN_OR_RETURN(to.vocabulary, member.String());
  } else if (name == "merges") {
    ASSIGN_OR_RETURN(to.merges, member.String());
  } else if (name == "file") {
    ASSIGN_OR_RETURN(to.file, member.String());
  } else if (name == "lower_case") {
    ASSIGN_OR_RETURN(to.lower_case, member.Bool());
  } else if (name == "strip_accents") {
    ASSIGN_OR_RETURN(to.strip_accents, member.Bool());
  } else if (name == "add_special_tokens") {
    ASSIGN_OR_RETURN(to.add_special_tokens, member.Bool());
  } else if (name == "max_length") {
    ASSIGN_OR_RETURN(to.max_length, member.Int());
    if (to.max_length < 1 || to.max_length > kMostTokens)
      return member.Mismatch(StrCat("a length from 1 to ", kMostTokens));
  } else if (name == "truncate") {
    ASSIGN_OR_RETURN(to.truncate, member.Bool());
  } else {
    return InvalidArgument(member.path(), ": unknown key", DidYouMean(name, kTokenizeKeys));
  }
  return OkStatus();
}

// Checks that the key of a file is set if and only if the tokenizer reads this file.
Status CheckFile(const TokenizeConfig& tokenize, const std::string& at, const char* key,
                 const std::string& file, bool needed, const char* owners) {
  if (file.empty() == !needed) return OkStatus();
  if (needed) return InvalidArgument(at, ".", key, ": expected a file, but it is missing");
  return InvalidArgument(at, ".", key, ": belongs to name ", owners, ", but name is ",
                         tokenize.name, "; remove one of the two");
}

Status CheckTokenize(const TokenizeConfig& tokenize, const std::string& at) {
  const bool pieces = tokenize.name == "wordpiece", pairs = tokenize.name == "bpe";
  RETURN_IF_ERROR(CheckFile(tokenize, at, "vocabulary", tokenize.vocabulary, pieces || pairs,
                            "wordpiece, bpe"));
  RETURN_IF_ERROR(CheckFile(tokenize, at, "merges", tokenize.merges, pairs, "bpe"));
  RETURN_IF_ERROR(CheckFile(tokenize, at, "file", tokenize.file, tokenize.name == "tokenizer_json",
                            "tokenizer_json"));
  for (const auto& [key, set] : {std::pair("lower_case", tokenize.lower_case.has_value()),
                                 std::pair("strip_accents", tokenize.strip_accents.has_value())}) {
    if (!set || pieces) continue;
    return InvalidArgument(at, ".", key, ": belongs to name wordpiece, but name is ", tokenize.name,
                           "; remove one of the two");
  }
  if (tokenize.max_length > 0) return OkStatus();
  return InvalidArgument(at, ".max_length: expected the number of tokens to which texts are ",
                         "padded, but it is missing");
}

}  // namespace

StatusOr<TokenizeConfig> ReadTokenize(const JsonField& field) {
  if (!field.IsObject())
    return field.Mismatch("a map of keys, such as {name: byte, max_length: 8}");
  ASSIGN_OR_RETURN(const auto members, field.Members());
  TokenizeConfig tokenize;
  for (const auto& [name, member] : members) RETURN_IF_ERROR(ReadMember(name, member, tokenize));
  RETURN_IF_ERROR(ReadName(field["name"]).status());
  RETURN_IF_ERROR(CheckTokenize(tokenize, field.path()));
  return tokenize;
}

Json TokenizeToJson(const TokenizeConfig& tokenize) {
  Json written = {{"name", tokenize.name}, {"max_length", tokenize.max_length}};
  if (!tokenize.vocabulary.empty()) written["vocabulary"] = tokenize.vocabulary;
  if (!tokenize.merges.empty()) written["merges"] = tokenize.merges;
  if (!tokenize.file.empty()) written["file"] = tokenize.file;
  if (tokenize.lower_case) written["lower_case"] = *tokenize.lower_case;
  if (tokenize.strip_accents) written["strip_accents"] = *tokenize.strip_accents;
  if (tokenize.add_special_tokens) written["add_special_tokens"] = *tokenize.add_special_tokens;
  if (tokenize.truncate) written["truncate"] = true;
  return written;
}

Json TokenizeSchema() {
  const Json text = {{"type", "string"}}, boolean = {{"type", "boolean"}};
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", {"name", "max_length"}},
          {"properties",
           {{"name", {{"type", "string"}, {"enum", kTokenizers}}},
            {"vocabulary", text},
            {"merges", text},
            {"file", text},
            {"lower_case", boolean},
            {"strip_accents", boolean},
            {"add_special_tokens", boolean},
            {"max_length", {{"type", "integer"}, {"minimum", 1}, {"maximum", kMostTokens}}},
            {"truncate", boolean}}}};
}

}  // namespace tfjob::config
