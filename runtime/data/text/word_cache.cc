#include "runtime/data/text/word_cache.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace tfjob::text {

size_t WordCache::SlotOf(std::string_view word) {
  return absl::Hash<absl::string_view>()(absl::string_view(word.data(), word.size())) % kSlots;
}

std::span<const int32_t> WordCache::Find(std::string_view word) const {
  if (word.empty() || word.size() > kMostBytes) return {};
  const Slot& slot = slots_[SlotOf(word)];
  if (std::string_view(slot.word, slot.bytes) != word) return {};
  return {slot.ids, slot.tokens};
}

void WordCache::Add(std::string_view word, std::span<const int32_t> tokens) {
  if (word.empty() || word.size() > kMostBytes || tokens.size() > kMostTokens) return;
  Slot& slot = slots_[SlotOf(word)];
  slot.bytes = static_cast<uint8_t>(word.size());
  slot.tokens = static_cast<uint8_t>(tokens.size());
  std::ranges::copy(word, slot.word);
  std::ranges::copy(tokens, slot.ids);
}

}  // namespace tfjob::text
