// Turns texts into sequences of ids of a fixed length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::text {

// How a text becomes a sequence. Immutable; cheap to copy.
struct SequenceOptions {
  std::shared_ptr<const Tokenizer> tokenizer;
  // If set, the tokens `begin` and `end` that the tokenizer has enclose those of the text. They
  // count towards the length.
  bool add_special_tokens = false;
  // If set, tokens at the end of a text are left out if the text has too many. Otherwise, such a
  // text is an error.
  bool truncate = false;
  // If set, a text that is truncated has no `end`: its place holds a token of the text.
  bool end_if_complete = false;
  int64_t padding = 0;  // the id that fills the places behind the tokens

  // Returns different texts for different options.
  std::string Print() const;
};

// Owned by one thread.
class SequenceEncoder {
 public:
  explicit SequenceEncoder(SequenceOptions options);

  // Fills `ids` and returns how many of them are tokens; the others are padding. Returns
  // InvalidArgument if the text has too many tokens, and the errors of TokenEncoder::Encode.
  StatusOr<size_t> Encode(std::string_view text, std::span<int64_t> ids);

 private:
  const SequenceOptions options_;
  const std::unique_ptr<TokenEncoder> encoder_;
};

}  // namespace tfjob::text
