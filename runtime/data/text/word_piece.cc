#include "runtime/data/text/word_piece.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/text/text_lines.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {
namespace {

constexpr std::string_view kUnknown = "[UNK]";
constexpr std::string_view kContinuation = "##";

// Returns the tokens, which are parts of `content`.
StatusOr<std::vector<TermTrie::Term>> ReadTokens(std::string_view content,
                                                 const std::string& path) {
  std::vector<TermTrie::Term> tokens;
  absl::flat_hash_map<std::string_view, int64_t> lines;
  RETURN_IF_ERROR(VisitLines(content, path, [&](std::string_view line, int64_t number) -> Status {
    if (line.empty()) return InvalidArgument("expected a token, got an empty line");
    const auto [place, added] = lines.emplace(line, number);
    if (!added) {
      return InvalidArgument("expected each token once, got ", Quote(line),
                             ", which is also in line ", place->second);
    }
    tokens.push_back({.text = line, .id = static_cast<int32_t>(tokens.size())});
    return OkStatus();
  }));
  if (lines.contains(kUnknown)) return tokens;
  return InvalidArgument(path, ": expected the token ", kUnknown,
                         ", which stands for unknown words, but it is missing");
}

}  // namespace

class WordPieceTokenizer::Encoder : public TokenEncoder {
 public:
  explicit Encoder(const WordPieceTokenizer& tokenizer)
      : tokenizer_(tokenizer), words_(tokenizer.words_) {}

  Status Encode(std::string_view text, TokenSink& to) override {
    words_.Split(text, [&](const Word& word) {
      if (word.too_long || !AddPieces(word.text, to)) to.Add(tokenizer_.unknown_);
      return !to.overflown();
    });
    return OkStatus();
  }

 private:
  // Adds the pieces of a word. Returns false, and adds nothing, if a part of it is unknown.
  bool AddPieces(std::string_view word, TokenSink& to) {
    std::array<int32_t, BasicTokenizer::kMostCharacters> pieces;
    size_t count = 0;
    for (int32_t node = tokenizer_.trie_.root(); !word.empty(); node = tokenizer_.continuation_) {
      if (node == TermTrie::kNone) return false;
      const TermTrie::Match match = tokenizer_.trie_.Longest(node, word);
      if (match.id == TermTrie::kNone) return false;
      pieces[count++] = match.id;  // each has at least one character
      word.remove_prefix(match.bytes);
    }
    for (size_t i = 0; i < count; ++i) to.Add(pieces[i]);
    return true;
  }

  const WordPieceTokenizer& tokenizer_;
  BasicTokenizer words_;
};

WordPieceTokenizer::WordPieceTokenizer(const std::vector<TermTrie::Term>& tokens,
                                       BasicOptions words)
    : words_(words), trie_(tokens), size_(static_cast<int64_t>(tokens.size())) {
  Fnv1a hash;
  hash.Add(
      StrCat("wordpiece ", words.lower_case ? "lower " : "", words.strip_accents ? "strip" : ""));
  for (const TermTrie::Term& token : tokens) {
    hash.Add("\n").Add(token.text);
    if (token.text == kUnknown) unknown_ = token.id;
    if (token.text == "[CLS]") special_.begin = token.id;
    if (token.text == "[SEP]") special_.end = token.id;
    if (token.text == "[PAD]") special_.padding = token.id;
  }
  continuation_ = trie_.Find(kContinuation);
  fingerprint_ = hash.hash();
}

StatusOr<std::shared_ptr<const Tokenizer>> WordPieceTokenizer::Read(
    const WordPieceOptions& options) {
  ASSIGN_OR_RETURN(const std::string content, ReadSmallFile(options.vocabulary));
  ASSIGN_OR_RETURN(const std::vector<TermTrie::Term> tokens,
                   ReadTokens(content, options.vocabulary));
  return std::shared_ptr<const Tokenizer>(new WordPieceTokenizer(tokens, options.words));
}

std::unique_ptr<TokenEncoder> WordPieceTokenizer::MakeEncoder() const {
  return std::make_unique<Encoder>(*this);
}

}  // namespace tfjob::text
