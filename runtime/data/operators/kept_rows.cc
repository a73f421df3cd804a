#include "runtime/data/operators/kept_rows.h"

#include <algorithm>
#include <bit>

#include "runtime/base/fnv1a.h"

namespace tfjob::data {

void KeptRows::Index() {
  counts_.clear();
  size_ = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    if (i % kWordsPerCount == 0) counts_.push_back(size_);
    size_ += std::popcount(words_[i]);
  }
}

int64_t KeptRows::At(int64_t index) const {
  const auto after = std::ranges::upper_bound(counts_, index);
  const auto group = static_cast<size_t>(after - counts_.begin()) - 1;
  int64_t left = index - counts_[group];
  size_t word = group * kWordsPerCount;
  while (left >= std::popcount(words_[word])) left -= std::popcount(words_[word++]);
  uint64_t bits = words_[word];
  for (; left > 0; --left) bits &= bits - 1;  // removes the lowest bit
  return static_cast<int64_t>(word) * 64 + std::countr_zero(bits);
}

uint64_t KeptRows::hash() const {
  Fnv1a hash;
  for (const uint64_t word : words_) hash.AddWord(word);
  return hash.hash();
}

}  // namespace tfjob::data
