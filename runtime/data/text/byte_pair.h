// Implements GPT-2's tokenizer, byte-level BPE
// (https://github.com/openai/gpt-2/blob/master/src/encoder.py): splits text into words
// (word_pattern.h), and merges the bytes of each word into tokens (word_merger.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/data/text/merge_table.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

// Uses the special token "<|endoftext|>", if the vocabulary has it, as the end and the padding.
class BytePairTokenizer : public Tokenizer {
 public:
  // Limits the bytes of a word. A longer word is split, so that work and memory are bounded.
  static constexpr size_t kMostWord = 64 << 10;

  // Propagates errors from MergeTable::Read.
  static StatusOr<std::shared_ptr<const Tokenizer>> Read(const BytePairFiles& files);

  std::unique_ptr<TokenEncoder> MakeEncoder() const override;
  int64_t size() const override { return table_.size(); }
  const SpecialTokens& special() const override { return special_; }
  uint64_t fingerprint() const override { return table_.fingerprint(); }

 private:
  explicit BytePairTokenizer(MergeTable table);

  const MergeTable table_;
  SpecialTokens special_;
};

}  // namespace tfjob::text
