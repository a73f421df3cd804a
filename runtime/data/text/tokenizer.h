// Defines what all tokenizers have in common: a text becomes tokens, each of which has a number,
// its id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::text {

// Receives ids, and stores them in memory of a fixed size.
class TokenSink {
 public:
  explicit TokenSink(std::span<int64_t> ids) : ids_(ids) {}

  void Add(int64_t id) {
    if (count_ < ids_.size()) ids_[count_] = id;
    ++count_;
  }
  // Returns whether more tokens were added than are stored. An encoder may then stop.
  bool overflown() const { return count_ > ids_.size(); }
  size_t count() const { return count_; }  // of the added tokens

 private:
  std::span<int64_t> ids_;
  size_t count_ = 0;
};

// Turns texts into tokens. Keeps its buffers from one text to the next. Owned by one thread.
class TokenEncoder {
 public:
  virtual ~TokenEncoder() = default;
  // Adds the tokens of a text. May stop once the sink has overflown. Bytes that are not UTF-8 count
  // as U+FFFD, unless the tokens are bytes. Text that looks like a special token is plain text.
  // Returns InvalidArgument if the text cannot be divided into tokens.
  virtual Status Encode(std::string_view text, TokenSink& to) = 0;
};

// The ids of the tokens that are not part of any text; nullopt if the vocabulary lacks one.
struct SpecialTokens {
  std::optional<int64_t> begin, end, padding;
  std::optional<int64_t> unknown;  // stands for words that the vocabulary lacks
};

// Immutable. Shared by threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::unique_ptr<TokenEncoder> MakeEncoder() const = 0;  // must not outlive the tokenizer
  virtual int64_t size() const = 0;                               // every id is in [0, size())
  virtual const SpecialTokens& special() const = 0;
  // Returns a hash of everything on which the ids depend.
  virtual uint64_t fingerprint() const = 0;
};

}  // namespace tfjob::text
