// Implements a tokenizer without a vocabulary: every byte is a token. The ids are the same as in
// ByT5 (https://arxiv.org/abs/2105.13626): 0 is the padding, 1 is the end of the text, 2 is unused,
// and byte b has the id b + 3.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

class ByteTokenizer : public Tokenizer {
 public:
  static constexpr int64_t kFirstByte = 3;

  std::unique_ptr<TokenEncoder> MakeEncoder() const override;
  int64_t size() const override { return kFirstByte + 256; }
  const SpecialTokens& special() const override { return special_; }
  uint64_t fingerprint() const override { return 1; }

 private:
  const SpecialTokens special_ = {.begin = {}, .end = 1, .padding = 0};
};

}  // namespace tfjob::text
