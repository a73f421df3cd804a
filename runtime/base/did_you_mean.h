// Suggests corrections for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tfjob {

// Returns the candidate that the user probably meant by `word`, or "" if no candidate is close
// enough. A candidate is close enough if it differs from `word` by a single edit, or by at most one
// edit per three characters of `word`. An edit inserts, omits or changes a character, or swaps two
// neighbours. Case is ignored.
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

// Returns the end of an error message: `; did you mean "batch_size"?`, or, if no candidate is close
// enough, `; known: a, b, c`. Returns "" if there are no candidates.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tfjob
