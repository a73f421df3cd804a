// Implements BERT's tokenizer
// (https://github.com/google-research/bert/blob/master/tokenization.py): splits text into words
// (basic_tokenizer.h), and a word, from left to right, into the longest pieces in the vocabulary.
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
  // occurs several times has its last id. Tokens that continue a word begin with "##". The token
  // "[UNK]" is required; it stands for words that cannot be split into known tokens.
  std::string vocabulary;
  BasicOptions words = {};
};

inline constexpr size_t kMostContinuationBytes = 16;

// The tokens of a tokenizer.
struct WordPieceTokens {
  std::vector<TermTrie::Term> terms;  // different ones; empty and very long ones are ignored
  std::string_view unknown;           // the token for words that consist of no known tokens
  // The beginning of tokens that continue a word. At most kMostContinuationBytes.
  std::string_view continuation;
  SpecialTokens special;
  int64_t size = 0;   // every id is below it
  uint64_t hash = 0;  // of all tokens and ids
};

class WordPieceTokenizer : public Tokenizer {
 public:
  // Makes a tokenizer of `tokens`, which need not outlive it. Returns InvalidArgument if `unknown`
  // is not among the tokens.
  static StatusOr<std::shared_ptr<const Tokenizer>> Make(const WordPieceTokens& tokens,
                                                         BasicOptions words);
  // The special tokens are "[CLS]", "[SEP]" and "[PAD]", if the vocabulary has them. Returns
  // InvalidArgument, with the file and the line, if the vocabulary is not as described above. Also
  // returns I/O errors.
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
  int32_t continuation_ = TermTrie::kNone;  // the node of the beginning of tokens that continue
  int32_t unknown_ = TermTrie::kNone;
  SpecialTokens special_;
  uint64_t fingerprint_ = 0;
};

}  // namespace tfjob::text
