#include "operator/policy/services.h"

#include <set>

#include "operator/policy/blocked.h"

namespace tfjob::policy {
namespace {

void Drop(const objects::Service& service, Draft& draft) {
  if (service.metadata.terminating()) return;
  draft.verdict.delete_services.push_back({service.metadata.name, service.metadata.uid});
}

// The slots whose service exists, is adopted, or has a name that cannot be had now.
std::set<Slot> ProvidedSlots(Draft& draft) {
  std::set<Slot> provided;
  for (const auto& service : draft.snapshot.services) {
    const std::optional<Slot> slot = SlotOfName(draft.job.metadata.name, service->metadata.name);
    if (draft.replicas.Has(slot)) {
      provided.insert(*slot);
    } else {
      Drop(*service, draft);
    }
  }
  for (const auto& service : draft.snapshot.orphan_services) {
    const std::optional<Slot> slot = SlotOfName(draft.job.metadata.name, service->metadata.name);
    if (!draft.replicas.Has(slot) || service->metadata.terminating()) continue;
    if (!provided.insert(*slot).second) continue;
    draft.verdict.adopt_services.push_back({service->metadata.name, service->metadata.uid});
  }
  return provided;
}

}  // namespace

void WantServices(Draft& draft) {
  const std::set<Slot> provided = ProvidedSlots(draft);
  const History* history = draft.history();
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (int32_t i = 0; i < group.size(); ++i) {
      const Slot slot{group.type, i};
      if (provided.contains(slot)) continue;
      std::string name = draft.NameOf(slot);
      if (history != nullptr &&
          TimeBlocked(history->blocked_services, name, draft.now, draft.options)) {
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
