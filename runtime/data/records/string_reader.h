// Converts the strings of features into ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/example_row.h"

namespace tfjob::data {

// Returns whether a feature consists of strings that become ids.
inline bool HasIds(const ExampleFeature& feature) {
  return feature.tokens || feature.vocabulary != nullptr;
}

// Reads one feature, for which HasIds must be true, of one example after another, and keeps its
// buffers. Only one thread may use a reader. The feature must outlive it.
class StringReader {
 public:
  explicit StringReader(const ExampleFeature& feature);

  // Begins an example, whose ids will be stored in `elements`.
  void Begin(std::span<std::byte> elements);
  // Stores the id of the next term or, for a feature with `tokens`, the ids of the string's tokens.
  // Returns InvalidArgument if the term is not known, or if the string has too many tokens.
  Status Add(std::string_view string);
  // Fills in missing ids. Returns InvalidArgument if the number of strings is wrong.
  Status End();

 private:
  Status WrongCount() const;

  const ExampleFeature& feature_;
  std::optional<text::SequenceEncoder> encoder_;
  std::span<int64_t> ids_;
  size_t strings_ = 0;  // how many were added
};

}  // namespace tfjob::data
