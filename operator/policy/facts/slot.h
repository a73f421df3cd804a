// Identifies one place of a job: a replica type and an index from 0 to replicas - 1. Its pod and
// its service bear the name `<job>-<type>-<index>`, which determines the slot of an object (labels
// can be edited, names cannot). Slots sort in the order in which objects are created and printed.
#pragma once

#include <optional>
#include <string_view>

#include "operator/api/names.h"

namespace tfjob::policy {

using Slot = api::ReplicaId;

// Returns the slot whose objects bear that name; nullopt if no slot of the job does.
std::optional<Slot> SlotOfName(std::string_view job_name, std::string_view object_name);

}  // namespace tfjob::policy
