#include "runtime/data/text/term_trie.h"

#include <algorithm>
#include <deque>

namespace tfjob::text {

// Builds the nodes in breadth-first order, so the children of a node are consecutive. The terms
// below a node are also consecutive, because the terms are sorted.
TermTrie::TermTrie(std::vector<Term> terms) {
  struct Range {
    size_t begin, end, depth;
  };
  std::ranges::sort(terms, {}, &Term::text);
  std::deque<Range> ranges = {{0, terms.size(), 0}};  // the terms below each node from `node` on
  nodes_.emplace_back();
  bytes_.push_back(0);
  for (size_t node = 0; !ranges.empty(); ++node) {
    const Range range = ranges.front();
    ranges.pop_front();
    size_t begin = range.begin;
    if (begin < range.end && terms[begin].text.size() == range.depth)
      nodes_[node].id = terms[begin++].id;
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < range.end) {
      const char byte = terms[begin].text[range.depth];
      size_t end = begin + 1;
      while (end < range.end && terms[end].text[range.depth] == byte) ++end;
      ranges.push_back({begin, end, range.depth + 1});
      nodes_.emplace_back();
      bytes_.push_back(static_cast<unsigned char>(byte));
      ++nodes_[node].children;
      begin = end;
    }
  }
}

int32_t TermTrie::Child(int32_t node, unsigned char byte) const {
  const Node& parent = nodes_[static_cast<size_t>(node)];
  const auto begin = bytes_.begin() + parent.first_child;
  const auto end = begin + parent.children;
  const auto found = std::lower_bound(begin, end, byte);
  return found == end || *found != byte ? kNone : static_cast<int32_t>(found - bytes_.begin());
}

int32_t TermTrie::Find(std::string_view prefix) const {
  int32_t node = root();
  for (size_t i = 0; i < prefix.size() && node != kNone; ++i)
    node = Child(node, static_cast<unsigned char>(prefix[i]));
  return node;
}

TermTrie::Match TermTrie::Longest(int32_t node, std::string_view text) const {
  Match match;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Child(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    const int32_t id = nodes_[static_cast<size_t>(node)].id;
    if (id != kNone) match = {.id = id, .bytes = i + 1};
  }
  return match;
}

}  // namespace tfjob::text
