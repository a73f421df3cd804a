#include "runtime/data/text/word_piece.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/text_lines.h"

namespace tfjob::text {
namespace {

constexpr std::string_view kUnknown = "[UNK]";
constexpr std::string_view kContinuation = "##";

// The maximum length of a token. Longer tokens cannot occur in a word, because a word has at most
// kMostCharacters characters of at most four bytes each.
constexpr size_t kMostTokenBytes = 4 * BasicTokenizer::kMostCharacters + kMostContinuationBytes;

std::string_view WithoutSpaceAtTheEnd(std::string_view line) {
  size_t end = 0;
  for (size_t i = 0; i < line.size();) {
    const CodePoint next = FirstCodePoint(line.substr(i));
    i += next.bytes;
    if (!IsSpace(next.value)) end = i;
  }
  return line.substr(0, end);
}

bool CanBePart(std::string_view token) {
  return !token.empty() && token.size() <= kMostTokenBytes;
}

// Returns the tokens in the content of a vocabulary file. The strings are parts of `content`.
StatusOr<WordPieceTokens> ReadTokens(std::string_view content, const std::string& path) {
  WordPieceTokens tokens{.unknown = kUnknown, .continuation = kContinuation};
  Fnv1a hash;
  absl::flat_hash_map<std::string_view, size_t> places;  // the index of each token in tokens.terms
  RETURN_IF_ERROR(VisitLines(content, path, [&](std::string_view line, int64_t number) -> Status {
    const std::string_view token = WithoutSpaceAtTheEnd(line);
    tokens.size = number;
    hash.Add("\n").Add(token);
    if (!CanBePart(token)) return OkStatus();
    const auto [place, added] = places.emplace(token, tokens.terms.size());
    if (added) tokens.terms.push_back({.text = token});
    tokens.terms[place->second].id = static_cast<int32_t>(number - 1);
    return OkStatus();
  }));
  tokens.hash = hash.hash();
  for (const TermTrie::Term& token : tokens.terms) {
    if (token.text == "[CLS]") tokens.special.begin = token.id;
    if (token.text == "[SEP]") tokens.special.end = token.id;
    if (token.text == "[PAD]") tokens.special.padding = token.id;
  }
  return tokens;
}

std::vector<TermTrie::Term> PartsOfWords(const std::vector<TermTrie::Term>& terms) {
  std::vector<TermTrie::Term> parts;
  std::ranges::copy_if(terms, std::back_inserter(parts), CanBePart, &TermTrie::Term::text);
  return parts;
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
  // Adds the pieces of a word. If a part of the word is unknown, adds nothing and returns false.
  bool AddPieces(std::string_view word, TokenSink& to) {
    std::array<int32_t, BasicTokenizer::kMostCharacters> pieces;
    size_t count = 0;
    for (int32_t node = tokenizer_.trie_.root(); !word.empty(); node = tokenizer_.continuation_) {
      if (node == TermTrie::kNone) return false;
      const TermTrie::Match match = tokenizer_.trie_.Longest(node, word);
      if (match.id == TermTrie::kNone) return false;
      pieces[count++] = match.id;  // each match has a character, so the array is large enough
      word.remove_prefix(match.bytes);
    }
    for (size_t i = 0; i < count; ++i) to.Add(pieces[i]);
    return true;
  }

  const WordPieceTokenizer& tokenizer_;
  BasicTokenizer words_;
};

WordPieceTokenizer::WordPieceTokenizer(const WordPieceTokens& tokens, BasicOptions words)
    : words_(words),
      trie_(PartsOfWords(tokens.terms)),
      size_(tokens.size),
      continuation_(trie_.Find(tokens.continuation)),
      special_(tokens.special) {
  const std::string options =
      StrCat("wordpiece ", words.lower_case ? "lower " : "", words.strip_accents ? "strip" : "");
  fingerprint_ = Fnv1a().Add(options).AddWord(tokens.hash).AddWord(HashOf(special_)).hash();
}

StatusOr<std::shared_ptr<const Tokenizer>> WordPieceTokenizer::Make(const WordPieceTokens& tokens,
                                                                    BasicOptions words) {
  const auto unknown = std::ranges::find(tokens.terms, tokens.unknown, &TermTrie::Term::text);
  if (unknown == tokens.terms.end()) {
    return InvalidArgument("expected the token ", tokens.unknown,
                           ", which stands for unknown words, but it is missing");
  }
  std::shared_ptr<WordPieceTokenizer> made(new WordPieceTokenizer(tokens, words));
  made->unknown_ = unknown->id;
  made->special_.unknown = unknown->id;
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

StatusOr<std::shared_ptr<const Tokenizer>> WordPieceTokenizer::Read(
    const WordPieceOptions& options) {
  ASSIGN_OR_RETURN(const std::string content,
                   ReadSmallFile(options.vocabulary, kMostTokenizerBytes));
  ASSIGN_OR_RETURN(const WordPieceTokens tokens, ReadTokens(content, options.vocabulary));
  auto made = Make(tokens, options.words);
  return made.ok() ? std::move(made) : Annotate(made.status(), options.vocabulary);
}

std::unique_ptr<TokenEncoder> WordPieceTokenizer::MakeEncoder() const {
  return std::make_unique<Encoder>(*this);
}

}  // namespace tfjob::text
