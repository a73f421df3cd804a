// Converts strings in features to ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/example_row.h"

namespace tfjob::data {

// Returns whether a feature consists of strings that are converted to ids.
inline bool HasIds(const ExampleFeature& feature) {
  return feature.tokens || feature.vocabulary != nullptr;
}

// Reads one feature of one example after another. Keeps its buffers from example to example. HasIds
// must be true for the feature. Only one thread may use a reader. The feature must outlive the
// reader.
class StringReader {
 public:
  explicit StringReader(const ExampleFeature& feature);

  // Starts an example. Its ids will be stored in `elements`.
  void Begin(std::span<std::byte> elements);
  // Stores the id of the next term or, for a feature with `tokens`, the ids of the string's tokens.
  // Returns InvalidArgument if the term is unknown, or if the string has too many tokens.
  Status Add(std::string_view string);
  // Fills in missing ids. Returns InvalidArgument if the number of strings is wrong.
  Status End();

 private:
  Status WrongCount() const;

  const ExampleFeature& feature_;
  std::optional<text::SequenceEncoder> encoder_;
  std::span<int64_t> ids_;
  size_t strings_ = 0;  // the number of strings added
};

}  // namespace tfjob::data
