// Implements BERT's tokenizer
// (https://github.com/google-research/bert/blob/master/tokenization.py): splits text into words
// (basic_tokenizer.h), and a word, from left to right, into the longest pieces in the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

// Uses the special tokens "[CLS]", "[SEP]" and "[PAD]", if the vocabulary has them, as the
// beginning, the end and the padding.
class WordPieceTokenizer : public Tokenizer {
 public:
  // Reads the vocabulary. Returns InvalidArgument, with the file, if a line is not UTF-8 or if
  // "[UNK]" is missing. Also returns I/O errors.
  static StatusOr<std::shared_ptr<const Tokenizer>> Read(const WordPieceOptions& options);

  std::unique_ptr<TokenEncoder> MakeEncoder() const override;
  int64_t size() const override { return size_; }  // the number of lines
  const SpecialTokens& special() const override { return special_; }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  class Encoder;
  struct Tokens;
  WordPieceTokenizer(const Tokens& tokens, BasicOptions words);
  static StatusOr<Tokens> ReadTokens(std::string_view content, const std::string& path);

  const BasicOptions words_;
  const TermTrie trie_;
  const int64_t size_;
  int32_t continuation_ = TermTrie::kNone;  // the node of "##"
  int32_t unknown_ = TermTrie::kNone;
  SpecialTokens special_;
  uint64_t fingerprint_ = 0;
};

}  // namespace tfjob::text
