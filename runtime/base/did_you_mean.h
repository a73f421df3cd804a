// Suggests corrections for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tfjob {

// Returns the candidate nearest to `word`, or "" if none is close enough to be what the user meant.
// A candidate is close enough if few edits turn it into `word`. An edit inserts, omits or changes a
// character, or swaps two neighbours. One edit per three characters of `word` is allowed, and
// always at least one. Case is ignored.
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

// Returns the end of an error message: `; did you mean "batch_size"?`, or, if no candidate is close
// enough, `; known: a, b, c`. Returns "" if there are no candidates.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tfjob
