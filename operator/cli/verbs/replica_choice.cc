#include "operator/cli/verbs/replica_choice.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_join.h"
#include "operator/api/replicas.h"

namespace tfjob::cli {
namespace {

std::string TypesOf(const api::TFJob& job) {
  return absl::StrJoin(job.spec.replicas, ", ", [&](std::string* out, const auto& entry) {
    *out += StrCat(api::LowerName(entry.first), " ", api::Replicas(job, entry.first));
  });
}

}  // namespace

StatusOr<ReplicaChoice> ReplicaChoice::Parse(const std::vector<std::string>& texts) {
  ReplicaChoice choice;
  for (const std::string& text : texts) {
    const auto wrong = [&text] {
      return InvalidArgument(
          "--replica: expected a replica such as worker/1, or a type such as "
          "worker (chief, master, worker, ps, evaluator), got \"",
          text, "\"");
    };
    const size_t end = text.find_first_of("/-");
    const auto type = api::ParseReplicaType(text.substr(0, end));
    if (!type) return wrong();
    Part part{*type, std::nullopt};
    if (end != std::string::npos) {
      int32_t index = 0;
      const char* last = text.data() + text.size();
      const auto [stopped, error] = std::from_chars(text.data() + end + 1, last, index);
      if (error != std::errc() || stopped != last || index < 0) return wrong();
      part.index = index;
    }
    choice.parts_.push_back(part);
  }
  return choice;
}

bool ReplicaChoice::Contains(const policy::Slot& slot) const {
  return parts_.empty() || std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
           return part.type == slot.type && part.index.value_or(slot.index) == slot.index;
         });
}

Status ReplicaChoice::CheckAgainst(const api::TFJob& job) const {
  for (const Part& part : parts_) {
    if (part.index.value_or(0) < api::Replicas(job, part.type)) continue;
    const std::string index = part.index ? StrCat("/", *part.index) : "";
    return FailedPrecondition(job.key(), ": it has no replica ", api::LowerName(part.type), index,
                              ", only ", TypesOf(job));
  }
  return OkStatus();
}

}  // namespace tfjob::cli
