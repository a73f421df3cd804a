#include "runtime/base/did_you_mean.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace tfjob {
namespace {

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Computes the restricted Damerau–Levenshtein distance, which does not edit swapped letters again.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t change = SameLetter(a[i - 1], b[j - 1]) ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      const bool swapped =
          i > 1 && j > 1 && SameLetter(a[i - 1], b[j - 2]) && SameLetter(a[i - 2], b[j - 1]);
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, std::span<const std::string> candidates) {
  // Skip words of more than 100 characters: they cannot be misspellings of this project's names,
  // which are short, and the comparison takes quadratic time.
  if (word.size() > 100) return "";
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = NearestName(word, candidates);
  if (!nearest.empty()) return StrCat("; did you mean \"", nearest, "\"?");
  const std::string all = absl::StrJoin(candidates, ", ");
  return all.empty() ? "" : StrCat("; known: ", all);
}

}  // namespace tfjob
