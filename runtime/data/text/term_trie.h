// Defines a trie over the bytes of terms, which finds the longest term at the beginning of a
// string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tfjob::text {

// Maps terms to ids. Immutable once built. Uses about 13 bytes per node, and has at most one node
// per byte of each term.
class TermTrie {
 public:
  static constexpr int32_t kNone = -1;  // no node, or no term

  struct Term {
    std::string_view text;
    int32_t id = 0;
  };
  // Builds the trie. The terms must be distinct and not empty. The trie keeps no reference to their
  // strings.
  explicit TermTrie(std::vector<Term> terms);

  int32_t root() const { return 0; }
  size_t bytes() const { return nodes_.size() * (sizeof(Node) + 1); }  // of memory
  // Returns the node that the bytes of `prefix` lead to, or kNone.
  int32_t Find(std::string_view prefix) const;

  struct Match {
    int32_t id = kNone;  // the id of the longest term
    size_t bytes = 0;    // the number of bytes of the text that belong to the term
  };
  // Returns the longest term that is reached from `node` by following bytes of `text`, at least
  // one.
  Match Longest(int32_t node, std::string_view text) const;

 private:
  struct Node {
    uint32_t first_child = 0;
    uint32_t children = 0;  // up to 256 nodes from first_child on, in the order of their bytes
    int32_t id = kNone;
  };

  int32_t Child(int32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
  std::vector<unsigned char> bytes_;  // by node: the byte that leads to it from its parent
};

}  // namespace tfjob::text
