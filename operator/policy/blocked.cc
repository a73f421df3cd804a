#include "operator/policy/blocked.h"

#include <algorithm>

#include "operator/api/reasons.h"

namespace tfjob::policy {

std::optional<Duration> TimeBlocked(const std::map<std::string, BlockedName>& names,
                                    const std::string& name, Duration now,
                                    const DecisionOptions& options) {
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  const Duration left = found->second.tried_at + options.blocked_retry - now;
  if (left <= Duration::zero()) return std::nullopt;
  return left;
}

namespace {

// Returns true if an object with this name now belongs to the job itself.
bool IsOurs(const auto& objects, const std::string& name) {
  return std::any_of(objects.begin(), objects.end(),
                     [&](const auto& object) { return object->metadata.name == name; });
}

}  // namespace

void WarnAboutBlockedNames(Draft& draft) {
  if (draft.history() == nullptr) return;
  const auto warn = [&](const std::map<std::string, BlockedName>& names, const auto& ours,
                        const char* reason,
                        std::string (*message)(std::string_view, std::string_view)) {
    for (const auto& [name, blocked] : names) {
      if (IsOurs(ours, name)) continue;
      if (!draft.replicas.Has(SlotOfName(draft.job.metadata.name, name))) continue;
      draft.AddEvent(JobEvent{objects::EventType::kWarning, reason, message(name, blocked.holder),
                              StrCat("blocked/", name, "/", blocked.holder_uid), true});
      draft.RequeueAfter(TimeBlocked(names, name, draft.snapshot.steady_now, draft.options)
                             .value_or(draft.options.blocked_retry));
    }
  };
  warn(draft.history()->blocked_pods, draft.snapshot.pods, api::kReasonPodNameTaken,
       api::PodNameTakenMessage);
  warn(draft.history()->blocked_services, draft.snapshot.services, api::kReasonServiceNameTaken,
       api::ServiceNameTakenMessage);
}

}  // namespace tfjob::policy
