// Merges the bytes of one word into tokens (byte pair encoding, https://arxiv.org/abs/1508.07909).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/data/text/merge_table.h"

namespace tfjob::text {

// Merges one word after another. Keeps its buffers from word to word. Only one thread may use a
// merger. The table must outlive the merger.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(table) {}

  // Returns the tokens of a word. The span stays valid until the next call. Repeatedly merges the
  // two neighbours whose merge has the lowest rank (the leftmost ones if several have the same
  // rank), until no two neighbours have a merge. Takes O(n·log n) time for n bytes.
  std::span<const int32_t> Merge(std::string_view word);

 private:
  static constexpr int32_t kNone = -1;

  // A token of the word. The tokens form a linked list. When two of them are merged, the right one
  // is removed from the list.
  struct Symbol {
    int32_t id = 0;
    int32_t before = kNone, after = kNone;
    bool removed = false;
  };
  // A merge of a symbol with the next one. It may have become impossible because other merges were
  // applied after it was added.
  struct Candidate {
    int32_t rank = 0, symbol = 0, id = 0;
    // The candidate to apply first must be the greatest, because a heap of the standard library has
    // its greatest element on top.
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
