// Merges the bytes of one word into tokens (byte pair encoding, https://arxiv.org/abs/1508.07909).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/data/text/merge_table.h"

namespace tfjob::text {

// Keeps its buffers from one word to the next. Owned by one thread. The table must outlive it.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(table) {}

  // Returns the tokens of a word, until the next call. Merges the two neighbours whose merge has
  // the lowest rank, the first ones among equals, until no neighbours have a merge. Takes time
  // O(n·log n) for n bytes.
  std::span<const int32_t> Merge(std::string_view word);

 private:
  static constexpr int32_t kNone = -1;

  // A token of the word. The tokens form a list, from which the right one of two merged tokens is
  // removed.
  struct Symbol {
    int32_t id = 0;
    int32_t before = kNone, after = kNone;
    bool removed = false;
  };
  // A merge of a symbol with the one after it, which may have become impossible.
  struct Candidate {
    int32_t rank = 0, symbol = 0, id = 0;
    // The heap has its greatest element on top.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : symbol > other.symbol;
    }
  };

  void Start(std::string_view word);
  void AddCandidate(int32_t symbol);
  bool IsPossible(const Candidate& candidate) const;
  void Apply(const Candidate& candidate);

  const MergeTable& table_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap
  std::vector<int32_t> tokens_;
};

}  // namespace tfjob::text
