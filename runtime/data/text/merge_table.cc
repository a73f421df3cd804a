#include "runtime/data/text/merge_table.h"

#include <algorithm>
#include <optional>

#include "runtime/base/fnv1a.h"
#include "runtime/data/text/byte_alphabet.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/text_lines.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {
namespace {

constexpr char kEndOfText[] = "<|endoftext|>";
constexpr std::string_view kVersion = "#version";

StatusOr<int32_t> IdOfToken(const TokenIds& ids, std::string_view token) {
  const std::optional<int32_t> id = ids.Find(token);
  if (id) return *id;
  return InvalidArgument("expected tokens of the vocabulary, got ", Quote(token));
}

}  // namespace

Status MergeTable::AddTokens(const TokenIds& ids) {
  absl::flat_hash_map<int32_t, std::string_view> owners;
  for (const auto& [token, id] : ids.tokens()) {
    const auto [owner, added] = owners.emplace(id, token);
    if (added) continue;
    return InvalidArgument("expected a different id for each token, got ", id, " for ",
                           Quote(std::min(owner->second, token)), " and ",
                           Quote(std::max(owner->second, token)));
  }
  size_ = ids.size();
  end_of_text_ = ids.Find(kEndOfText).value_or(-1);
  return AddBytes(ids);
}

Status MergeTable::AddBytes(const TokenIds& ids) {
  constexpr std::array<char32_t, 256> kAlphabet = ByteAlphabet();
  for (size_t byte = 0; byte < kAlphabet.size(); ++byte) {
    std::string token;
    AppendUtf8(kAlphabet[byte], token);
    const std::optional<int32_t> id = ids.Find(token);
    if (!id) {
      return InvalidArgument("expected a token for every byte, but that for byte ", byte, ", ",
                             Quote(token), ", is missing; this is not a byte-level vocabulary");
    }
    bytes_[byte] = *id;
  }
  return OkStatus();
}

Status MergeTable::AddMerge(std::string_view line, const TokenIds& ids) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
    return InvalidArgument("expected two tokens, separated by one space, got ", Quote(line));
  return AddMerge(line.substr(0, space), line.substr(space + 1), ids);
}

Status MergeTable::AddMerge(std::string_view left, std::string_view right, const TokenIds& ids) {
  ASSIGN_OR_RETURN(const int32_t left_id, IdOfToken(ids, left));
  ASSIGN_OR_RETURN(const int32_t right_id, IdOfToken(ids, right));
  ASSIGN_OR_RETURN(const int32_t id, IdOfToken(ids, StrCat(left, right)));
  const Merge merge{.rank = static_cast<int32_t>(merges_.size()), .id = id};
  if (merges_.emplace(KeyOf(left_id, right_id), merge).second) return OkStatus();
  return InvalidArgument("expected each merge once, got ", Quote(StrCat(left, " ", right)),
                         " again");
}

Status MergeTable::AddMerge(const JsonView& merge, const TokenIds& ids) {
  if (merge.IsString()) return AddMerge(merge.Text(), ids);
  std::array<std::string_view, 2> tokens;
  size_t count = 0;
  bool two = merge.IsArray();
  if (two) {
    RETURN_IF_ERROR(merge.ForEachElement([&](const JsonView& token) {
      two = two && token.IsString() && count < tokens.size();
      if (two) tokens[count++] = token.Text();
      return OkStatus();
    }));
  }
  if (two && count == tokens.size()) return AddMerge(tokens[0], tokens[1], ids);
  return InvalidArgument("expected two tokens, got ", Describe(merge));
}

Status MergeTable::AddMerges(std::string_view content, const std::string& path,
                             const TokenIds& ids) {
  return VisitLines(content, path, [&](std::string_view line, int64_t) {
    return line.starts_with(kVersion) ? OkStatus() : AddMerge(line, ids);
  });
}

StatusOr<MergeTable> MergeTable::Read(const BytePairFiles& files) {
  ASSIGN_OR_RETURN(const std::string tokens, ReadSmallFile(files.vocabulary, kMostTokenizerBytes));
  const StatusOr<TokenIds> ids = TokenIds::Parse(tokens);
  if (!ids.ok()) return Annotate(ids.status(), files.vocabulary);
  MergeTable table;
  const Status added = table.AddTokens(*ids);
  if (!added.ok()) return Annotate(added, files.vocabulary);
  ASSIGN_OR_RETURN(const std::string merges, ReadSmallFile(files.merges, kMostTokenizerBytes));
  RETURN_IF_ERROR(table.AddMerges(merges, files.merges, *ids));
  table.fingerprint_ = Fnv1a().Add("bpe\n").Add(tokens).Add("\n").Add(merges).hash();
  return table;
}

StatusOr<MergeTable> MergeTable::Parse(std::string_view vocabulary, std::string_view merges,
                                       const std::string& at) {
  const StatusOr<TokenIds> ids = TokenIds::Parse(vocabulary);
  if (!ids.ok()) return Annotate(ids.status(), at + ".vocab");
  MergeTable table;
  RETURN_IF_ERROR(Annotate(table.AddTokens(*ids), at + ".vocab"));
  table.fingerprint_ = Fnv1a().Add("bpe\n").AddWord(ids->hash()).Add("\n").Add(merges).hash();
  if (merges.empty()) return table;
  JsonDocument document;
  const StatusOr<JsonView> list = document.Parse(merges);
  if (!list.ok()) return Annotate(list.status(), at + ".merges");
  if (!list->IsArray())
    return InvalidArgument(at, ".merges: expected a list of merges, got ", Describe(*list));
  size_t index = 0;
  RETURN_IF_ERROR(list->ForEachElement([&](const JsonView& merge) {
    const Status added = table.AddMerge(merge, *ids);
    return added.ok() ? (++index, added) : Annotate(added, StrCat(at, ".merges[", index, "]"));
  }));
  return table;
}

}  // namespace tfjob::text
