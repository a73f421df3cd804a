#include "operator/local/run/field_warnings.h"

#include "runtime/base/status.h"

namespace tfjob::local {

std::string PathOf(std::string_view warning) {
  return std::string(warning.substr(0, warning.find(' ')));
}

void FieldWarnings::Add(const std::string& where, const std::string& warning) {
  const std::string path = PathOf(warning);
  const auto key =
      std::make_tuple(where, path.substr(path.rfind('.') + 1), warning.substr(path.size()));
  const auto [found, added] = index_.emplace(key, groups_.size());
  if (added) groups_.push_back({StrCat(where, ": ", warning), {}});
  groups_[found->second].paths.insert(path);
}

std::vector<std::string> FieldWarnings::Lines() const {
  std::vector<std::string> lines;
  for (const Group& group : groups_) {
    const size_t more = group.paths.size() - 1;
    std::string line = group.first;
    if (more > 0) line += StrCat(" (and in ", more, " other ", more == 1 ? "place)" : "places)");
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tfjob::local
