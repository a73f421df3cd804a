// Implements GPT-2's tokenizer, byte-level BPE
// (https://github.com/openai/gpt-2/blob/master/src/encoder.py): splits text into words
// (word_pattern.h), and merges the bytes of each word into tokens (word_merger.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/data/text/merge_table.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

struct BytePairOptions {
  bool add_prefix_space = false;  // add a space before text that does not start with one
  SpecialTokens special = {};
  int64_t least_size = 0;  // minimum of Tokenizer::size, for special tokens with larger ids
};

class BytePairTokenizer : public Tokenizer {
 public:
  // The maximum number of bytes of a word. A longer word is split, to limit the work and the
  // memory.
  static constexpr size_t kMostWord = 64 << 10;

  BytePairTokenizer(MergeTable table, const BytePairOptions& options);
  // Reads a tokenizer. If the vocabulary contains "<|endoftext|>", this is the special token for
  // the end and for the padding. Propagates errors from MergeTable::Read.
  static StatusOr<std::shared_ptr<const Tokenizer>> Read(const BytePairFiles& files);

  std::unique_ptr<TokenEncoder> MakeEncoder() const override;
  int64_t size() const override { return std::max(table_.size(), options_.least_size); }
  const SpecialTokens& special() const override { return options_.special; }
  uint64_t fingerprint() const override;

 private:
  const MergeTable table_;
  const BytePairOptions options_;
};

}  // namespace tfjob::text
