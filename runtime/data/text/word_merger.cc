#include "runtime/data/text/word_merger.h"

#include <algorithm>

namespace tfjob::text {

std::span<const int32_t> WordMerger::Merge(std::string_view word) {
  Start(word);
  while (!candidates_.empty()) {
    std::ranges::pop_heap(candidates_, std::less<Candidate>());
    const Candidate next = candidates_.back();
    candidates_.pop_back();
    if (IsPossible(next)) Apply(next);
  }
  tokens_.clear();
  for (const Symbol& symbol : symbols_) {
    if (!symbol.removed) tokens_.push_back(symbol.id);
  }
  return tokens_;
}

void WordMerger::Start(std::string_view word) {
  const auto count = static_cast<int32_t>(word.size());
  symbols_.clear();
  candidates_.clear();
  for (int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<size_t>(i)]);
    symbols_.push_back({.id = table_.IdOf(byte),
                        .before = i - 1,  // kNone for the first symbol
                        .after = i + 1 < count ? i + 1 : kNone});
  }
  for (int32_t i = 0; i + 1 < count; ++i) AddCandidate(i);
}

void WordMerger::AddCandidate(int32_t number) {
  const Symbol& symbol = symbols_[static_cast<size_t>(number)];
  const int32_t right = symbols_[static_cast<size_t>(symbol.after)].id;
  const MergeTable::Merge* const merge = table_.Find(symbol.id, right);
  if (merge == nullptr) return;
  candidates_.push_back({.rank = merge->rank, .symbol = number, .id = merge->id});
  std::ranges::push_heap(candidates_, std::less<Candidate>());
}

bool WordMerger::IsPossible(const Candidate& candidate) const {
  const Symbol& symbol = symbols_[static_cast<size_t>(candidate.symbol)];
  if (symbol.removed || symbol.after == kNone) return false;
  const int32_t right = symbols_[static_cast<size_t>(symbol.after)].id;
  const MergeTable::Merge* const merge = table_.Find(symbol.id, right);
  return merge != nullptr && merge->id == candidate.id;
}

void WordMerger::Apply(const Candidate& candidate) {
  Symbol& symbol = symbols_[static_cast<size_t>(candidate.symbol)];
  Symbol& right = symbols_[static_cast<size_t>(symbol.after)];
  right.removed = true;
  symbol.id = candidate.id;
  symbol.after = right.after;
  if (symbol.after != kNone) {
    symbols_[static_cast<size_t>(symbol.after)].before = candidate.symbol;
    AddCandidate(candidate.symbol);
  }
  if (symbol.before != kNone) AddCandidate(symbol.before);
}

}  // namespace tfjob::text
