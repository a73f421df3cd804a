#include "operator/policy/services.h"

#include <algorithm>

#include "operator/objects/service.h"
#include "operator/policy/blocked.h"
#include "operator/policy/facts/history.h"

namespace tfjob::policy {
namespace {

void Drop(const objects::Service& service, Draft& draft) {
  if (service.metadata.terminating()) return;
  draft.verdict.delete_services.push_back({service.metadata.name, service.metadata.uid});
}

// Returns the slots whose service exists or is adopted, in order. Also adds to the verdict the
// services to adopt and, for deletion, the services without a slot.
std::vector<Slot> ProvidedSlots(Draft& draft) {
  const std::string& job_name = draft.job.metadata.name;
  std::vector<Slot> provided;
  for (const auto& service : draft.snapshot.services) {
    const std::optional<Slot> slot = SlotOfName(job_name, service->metadata.name);
    if (draft.replicas.Has(slot)) {
      provided.push_back(*slot);
    } else {
      Drop(*service, draft);
    }
  }
  for (const auto& service : draft.snapshot.orphan_services) {
    const std::optional<Slot> slot = SlotOfName(job_name, service->metadata.name);
    if (!draft.replicas.Has(slot) || service->metadata.terminating()) continue;
    provided.push_back(*slot);
    draft.verdict.adopt_services.push_back({service->metadata.name, service->metadata.uid});
  }
  std::sort(provided.begin(), provided.end());
  return provided;
}

}  // namespace

void WantServices(Draft& draft) {
  const std::vector<Slot> provided = ProvidedSlots(draft);
  if (draft.waits_for_queue) return;
  const History* history = draft.history();
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (int32_t i = 0; i < group.size(); ++i) {
      const Slot slot{group.type, i};
      if (std::binary_search(provided.begin(), provided.end(), slot)) continue;
      std::string name = draft.NameOf(slot);
      if (history != nullptr &&
          TimeBlocked(history->blocked_services, name, draft.snapshot.steady_now, draft.options)) {
        continue;
      }
      draft.verdict.create_services.push_back({slot, std::move(name)});
    }
  }
}

void DropServices(Draft& draft) {
  for (const auto& service : draft.snapshot.services) Drop(*service, draft);
}

}  // namespace tfjob::policy
