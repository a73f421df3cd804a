// Identifies a slot of a job: a replica type and an index from 0 to replicas - 1. The pod and the
// service of a slot are named `<job>-<type>-<index>`. An object's slot is derived from this name,
// because users can edit labels but not names. Slots are sorted in the order in which objects are
// created and printed.
#pragma once

#include <optional>
#include <string_view>

#include "operator/api/names.h"

namespace tfjob::policy {

using Slot = api::ReplicaId;

// Returns the slot whose objects have the name `object_name`; nullopt if there is no such slot.
std::optional<Slot> SlotOfName(std::string_view job_name, std::string_view object_name);

}  // namespace tfjob::policy
