// One place of a job: a replica type and an index from 0 to replicas - 1. Its pod and its service
// bear the name `<job>-<type>-<index>`, which is what tells an object's slot (labels can be edited,
// names cannot). Slots sort in the order in which objects are created and printed.
#pragma once

#include <optional>
#include <string_view>

#include "operator/api/names.h"

namespace tfjob::policy {

using Slot = api::ReplicaId;

// The slot whose objects bear that name; nothing when no slot of the job's does.
std::optional<Slot> SlotOfName(std::string_view job_name, std::string_view object_name);

}  // namespace tfjob::policy
