// Suggests corrections for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tfjob {

// Returns the candidate nearest to `word`, or "" if none is near enough to be a typing error. A
// candidate is near if at most a third of the word's characters (at least one) are inserted,
// omitted, changed or swapped with their neighbour. Case is ignored.
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

// Returns the end of an error message: "; did you mean "batch_size"?", or, if no candidate is near,
// "; known are a, b, c".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tfjob
