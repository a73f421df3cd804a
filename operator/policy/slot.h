// One place of a job: a replica type and an index from 0 to replicas - 1. Its pod and its service
// bear the name
// `<job>-<type>-<index>`. Slots sort in the order in which objects are created and printed.
#pragma once

#include <compare>
#include <cstdint>

#include "operator/api/tfjob.h"

namespace tfjob::policy {

struct Slot {
  api::ReplicaType type = api::ReplicaType::kWorker;
  int32_t index = 0;

  auto operator<=>(const Slot&) const = default;
};

}  // namespace tfjob::policy
