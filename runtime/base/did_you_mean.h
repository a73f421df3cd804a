// Suggestions for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tfjob {

// The candidate that is nearest to `word` when it is near enough to be a typing error: at most a
// third of the word's characters (at least one) inserted, left out, changed or swapped with their
// neighbour, case ignored. "" when none is.
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

// The end of an error message: "; did you mean "batch_size"?", or, when nothing is near, "; known
// are a, b, c".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tfjob
