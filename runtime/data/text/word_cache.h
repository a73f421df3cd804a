// Caches the tokens of short words. The amount of memory is fixed, and does not depend on the
// words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tfjob::text {

// Maps words to their tokens. Only one thread may use a cache.
class WordCache {
 public:
  static constexpr size_t kSlots = 1 << 14;  // 64 bytes each
  static constexpr size_t kMostBytes = 30, kMostTokens = 8;

  WordCache() : slots_(kSlots) {}

  // Returns the tokens of a word, or an empty span if the word is not in the cache. The span stays
  // valid until the next Add.
  std::span<const int32_t> Find(std::string_view word) const;
  // Stores the tokens of a word, unless the word or the list of tokens is too long. Evicts the word
  // that had the same slot.
  void Add(std::string_view word, std::span<const int32_t> tokens);

 private:
  struct Slot {
    uint8_t bytes = 0, tokens = 0;  // both are 0 if the slot is empty
    char word[kMostBytes];
    int32_t ids[kMostTokens];
  };

  static size_t SlotOf(std::string_view word);

  std::vector<Slot> slots_;
};

}  // namespace tfjob::text
