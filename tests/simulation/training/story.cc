#include "tests/simulation/training/story.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace tfjob::simulation {

void Story::Tell(const std::string& task, const std::string& what) {
  const auto microseconds = machine_.elapsed().count();
  std::string fraction = StrCat(1'000'000 + microseconds % 1'000'000);
  events_.push_back(
      StrCat(microseconds / 1'000'000, ".", fraction.substr(1), " ", task, ": ", what));
}

void Story::Violate(const std::string& what) {
  Tell("violation", what);
  if (violation_.empty()) violation_ = what;
}

std::string Story::Last(size_t count) const {
  std::string text;
  for (size_t i = events_.size() - std::min(count, events_.size()); i < events_.size(); ++i) {
    text += events_[i] + "\n";
  }
  return text;
}

}  // namespace tfjob::simulation
