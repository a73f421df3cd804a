// Converts text into id sequences of a fixed length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

// Determines how text is converted to a sequence. Cheap to copy.
struct SequenceOptions {
  std::shared_ptr<const Tokenizer> tokenizer;
  // Whether to add the special tokens `begin` and `end` around the text's tokens, where the
  // tokenizer has them. They count towards the length.
  bool add_special_tokens = false;
  // If set, the last tokens of text with too many tokens are dropped. Otherwise, too many tokens
  // are an error.
  bool truncate = false;
  // If set, truncated text has no `end`; a token of the text takes the place of `end`.
  bool end_if_complete = false;
  int64_t padding = 0;  // the id that fills the remaining positions

  // Returns different strings for different options.
  std::string Print() const;
};

// Converts one string after another. Only one thread may use an encoder.
class SequenceEncoder {
 public:
  explicit SequenceEncoder(SequenceOptions options);

  // Fills `ids`, and returns the number of tokens; the remaining ids are padding. Returns
  // InvalidArgument if the text has too many tokens and is not truncated, or if `ids` has no room
  // for the special tokens. Propagates errors from TokenEncoder::Encode.
  StatusOr<size_t> Encode(std::string_view text, std::span<int64_t> ids);

 private:
  const SequenceOptions options_;
  const std::unique_ptr<TokenEncoder> encoder_;
};

}  // namespace tfjob::text
