#include "runtime/data/text/merge_table.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/base/fnv1a.h"
#include "runtime/base/json.h"
#include "runtime/data/text/byte_alphabet.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/text_lines.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {
namespace {

constexpr char kEndOfText[] = "<|endoftext|>";
constexpr std::string_view kVersion = "#version";

using Ids = absl::flat_hash_map<std::string, int32_t>;

std::optional<int32_t> Lookup(const Ids& ids, std::string_view token) {
  const auto found = ids.find(absl::string_view(token.data(), token.size()));
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

StatusOr<int32_t> IdOfToken(const Ids& ids, std::string_view token) {
  const std::optional<int32_t> id = Lookup(ids, token);
  if (id) return *id;
  return InvalidArgument("expected tokens of the vocabulary, got ", Quote(token));
}

StatusOr<int32_t> ReadId(const std::string& token, const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t id = value.get<uint64_t>();
    if (id <= static_cast<uint64_t>(MergeTable::kMostId)) return static_cast<int32_t>(id);
  }
  return InvalidArgument("token ", Quote(token), ": expected an id from 0 to ", MergeTable::kMostId,
                         ", got ", DescribeJson(value));
}

}  // namespace

Status MergeTable::AddTokens(const Json& tokens, Ids& ids) {
  if (!tokens.is_object()) {
    return InvalidArgument("expected an object that maps tokens to ids, got ",
                           DescribeJson(tokens));
  }
  absl::flat_hash_map<int32_t, const std::string*> owners;
  for (const auto& [token, value] : tokens.items()) {
    ASSIGN_OR_RETURN(const int32_t id, ReadId(token, value));
    const auto [owner, added] = owners.emplace(id, &token);
    if (!added) {
      return InvalidArgument("expected a different id for each token, got ", id, " for ",
                             Quote(*owner->second), " and ", Quote(token));
    }
    ids.emplace(token, id);
    size_ = std::max<int64_t>(size_, int64_t{id} + 1);
  }
  end_of_text_ = Lookup(ids, kEndOfText).value_or(-1);
  return AddBytes(ids);
}

Status MergeTable::AddBytes(const Ids& ids) {
  constexpr std::array<char32_t, 256> kAlphabet = ByteAlphabet();
  for (size_t byte = 0; byte < kAlphabet.size(); ++byte) {
    std::string token;
    AppendUtf8(kAlphabet[byte], token);
    const std::optional<int32_t> id = Lookup(ids, token);
    if (!id) {
      return InvalidArgument("expected a token for every byte, but that for byte ", byte, ", ",
                             Quote(token), ", is missing; this is not a byte-level vocabulary");
    }
    bytes_[byte] = *id;
  }
  return OkStatus();
}

Status MergeTable::AddMerge(std::string_view line, const Ids& ids) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
    return InvalidArgument("expected two tokens, separated by one space, got ", Quote(line));
  return AddMerge(line.substr(0, space), line.substr(space + 1), ids);
}

Status MergeTable::AddMerge(std::string_view left, std::string_view right, const Ids& ids) {
  ASSIGN_OR_RETURN(const int32_t left_id, IdOfToken(ids, left));
  ASSIGN_OR_RETURN(const int32_t right_id, IdOfToken(ids, right));
  ASSIGN_OR_RETURN(const int32_t id, IdOfToken(ids, StrCat(left, right)));
  const Merge merge{.rank = static_cast<int32_t>(merges_.size()), .id = id};
  if (merges_.emplace(KeyOf(left_id, right_id), merge).second) return OkStatus();
  return InvalidArgument("expected each merge once, got ", Quote(StrCat(left, " ", right)),
                         " again");
}

Status MergeTable::AddMerge(const JsonField& merge, const Ids& ids) {
  const Json& value = *merge.value();
  if (value.is_string()) return AddMerge(value.get_ref<const std::string&>(), ids);
  if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !value[1].is_string())
    return InvalidArgument("expected two tokens, got ", DescribeJson(value));
  return AddMerge(value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>(),
                  ids);
}

Status MergeTable::AddMerges(std::string_view content, const std::string& path, const Ids& ids) {
  return VisitLines(content, path, [&](std::string_view line, int64_t) {
    return line.starts_with(kVersion) ? OkStatus() : AddMerge(line, ids);
  });
}

StatusOr<MergeTable> MergeTable::Read(const BytePairFiles& files) {
  MergeTable table;
  Ids ids;
  ASSIGN_OR_RETURN(const std::string tokens, ReadSmallFile(files.vocabulary, kMostTokenizerBytes));
  ASSIGN_OR_RETURN(const Json parsed, ParseJson(tokens, files.vocabulary));
  const Status added = table.AddTokens(parsed, ids);
  if (!added.ok()) return Annotate(added, files.vocabulary);
  ASSIGN_OR_RETURN(const std::string merges, ReadSmallFile(files.merges, kMostTokenizerBytes));
  RETURN_IF_ERROR(table.AddMerges(merges, files.merges, ids));
  table.fingerprint_ = Fnv1a().Add("bpe\n").Add(tokens).Add("\n").Add(merges).hash();
  return table;
}

StatusOr<MergeTable> MergeTable::Parse(const JsonField& vocabulary, const JsonField& merges) {
  MergeTable table;
  Ids ids;
  if (!vocabulary.IsObject()) return vocabulary.Mismatch("an object that maps tokens to ids");
  RETURN_IF_ERROR(Annotate(table.AddTokens(*vocabulary.value(), ids), vocabulary.path()));
  ASSIGN_OR_RETURN(const std::vector<JsonField> list, merges.Elements());
  for (const JsonField& merge : list) {
    if (!merge.present()) return merge.Mismatch("two tokens");
    RETURN_IF_ERROR(Annotate(table.AddMerge(merge, ids), merge.path()));
  }
  const Json none = Json::array();
  table.fingerprint_ = Fnv1a()
                           .Add("bpe\n")
                           .Add(PrintJson(*vocabulary.value()))
                           .Add("\n")
                           .Add(PrintJson(merges.present() ? *merges.value() : none))
                           .hash();
  return table;
}

}  // namespace tfjob::text
