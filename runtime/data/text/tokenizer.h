// Defines the interface of tokenizers, which split text into tokens. Each token is identified by a
// number, its id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::text {

// Receives ids, and stores as many of them as fit in memory of a fixed size.
class TokenSink {
 public:
  explicit TokenSink(std::span<int64_t> ids) : ids_(ids) {}

  void Add(int64_t id) {
    if (count_ < ids_.size()) ids_[count_] = id;
    ++count_;
  }
  // Returns whether more ids were added than fit in the memory. An encoder may then stop.
  bool overflown() const { return count_ > ids_.size(); }
  size_t count() const { return count_; }  // how many ids were added

 private:
  std::span<int64_t> ids_;
  size_t count_ = 0;
};

// Encodes one string after another. Keeps its buffers from string to string. Only one thread may
// use an encoder.
class TokenEncoder {
 public:
  virtual ~TokenEncoder() = default;
  // Adds the tokens of `text` to the sink. May stop once the sink has overflown. Unless the tokens
  // are bytes, reads bytes that are not UTF-8 as U+FFFD. Treats text that looks like a special
  // token as ordinary text. Returns InvalidArgument if the text cannot be split into tokens.
  virtual Status Encode(std::string_view text, TokenSink& to) = 0;
};

// The ids of tokens that no text contains, or nullopt for tokens that the vocabulary lacks.
struct SpecialTokens {
  std::optional<int64_t> begin, end, padding;
  std::optional<int64_t> unknown;  // represents words that the vocabulary lacks
};

// Returns a hash of the ids.
uint64_t HashOf(const SpecialTokens& special);

// Creates encoders that share the tokenizer's vocabulary. Immutable. Any number of threads may use
// a tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::unique_ptr<TokenEncoder> MakeEncoder() const = 0;  // must not outlive the tokenizer
  virtual int64_t size() const = 0;                               // every id is in [0, size())
  virtual const SpecialTokens& special() const = 0;
  // Returns a hash of everything that the ids depend on.
  virtual uint64_t fingerprint() const = 0;
};

}  // namespace tfjob::text
