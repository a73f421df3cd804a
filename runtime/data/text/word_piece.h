// Implements BERT's tokenizer
// (https://github.com/google-research/bert/blob/master/tokenization.py): splits text into words
// (basic_tokenizer.h), and then splits each word, from left to right, into the longest pieces in
// the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/text/basic_tokenizer.h"
#include "runtime/data/text/term_trie.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

struct WordPieceOptions {
  // A file with one token per line. The id of a token is its line number, counted from 0. As in
  // BERT, white space at the end of a line is ignored, blank lines have no token, and a token that
  // occurs several times has its last id. Tokens that continue a word start with "##". The token
  // "[UNK]" is required; it represents words that cannot be split into known tokens.
  std::string vocabulary;
  BasicOptions words = {};
};

inline constexpr size_t kMostContinuationBytes = 16;

// The tokens of a tokenizer.
struct WordPieceTokens {
  std::vector<TermTrie::Term> terms;  // without duplicates; empty and very long terms are ignored
  std::string_view unknown;           // the token for words that cannot be split into known tokens
  // The prefix of tokens that continue a word. At most kMostContinuationBytes long.
  std::string_view continuation;
  SpecialTokens special;
  int64_t size = 0;   // every id is in [0, size)
  uint64_t hash = 0;  // a hash of all tokens and ids
};

class WordPieceTokenizer : public Tokenizer {
 public:
  // Creates a tokenizer from `tokens`, which need not outlive the tokenizer. Returns
  // InvalidArgument if `unknown` is not among the tokens.
  static StatusOr<std::shared_ptr<const Tokenizer>> Make(const WordPieceTokens& tokens,
                                                         BasicOptions words);
  // Reads a tokenizer. The special tokens are "[CLS]", "[SEP]" and "[PAD]", if the vocabulary has
  // them. Returns InvalidArgument, with the file and the line, if the vocabulary is not as
  // described above. Also returns I/O errors.
  static StatusOr<std::shared_ptr<const Tokenizer>> Read(const WordPieceOptions& options);

  std::unique_ptr<TokenEncoder> MakeEncoder() const override;
  int64_t size() const override { return size_; }  // the number of lines
  const SpecialTokens& special() const override { return special_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  size_t bytes() const { return trie_.bytes(); }  // of memory for the tokens

 private:
  class Encoder;
  WordPieceTokenizer(const WordPieceTokens& tokens, BasicOptions words);

  const BasicOptions words_;
  const TermTrie trie_;
  const int64_t size_;
  int32_t continuation_ = TermTrie::kNone;  // the prefix of tokens that continue a word
  int32_t unknown_ = TermTrie::kNone;
  SpecialTokens special_;
  uint64_t fingerprint_ = 0;
};

}  // namespace tfjob::text
