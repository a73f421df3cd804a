#include "operator/policy/facts/slot.h"

#include <charconv>

namespace tfjob::policy {

std::optional<Slot> SlotOfName(std::string_view job_name, std::string_view object_name) {
  if (!object_name.starts_with(job_name)) return std::nullopt;
  object_name.remove_prefix(job_name.size());
  for (const api::ReplicaType type : api::kReplicaTypes) {
    const std::string_view word = api::LowerName(type);
    std::string_view rest = object_name;
    if (rest.size() < word.size() + 3 || rest.front() != '-' || !rest.substr(1).starts_with(word) ||
        rest[word.size() + 1] != '-') {
      continue;
    }
    rest.remove_prefix(word.size() + 2);
    if (rest.front() == '0' && rest.size() > 1) return std::nullopt;  // names have no leading 0
    int32_t index = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    if (error != std::errc() || stop != rest.data() + rest.size() || index < 0) return std::nullopt;
    return Slot{type, index};
  }
  return std::nullopt;
}

}  // namespace tfjob::policy
