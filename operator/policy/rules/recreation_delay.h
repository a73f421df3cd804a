// Determines how long the recreation of one index waits after its pod is gone.
#pragma once

#include "operator/policy/facts/history.h"
#include "operator/policy/facts/options.h"

namespace tfjob::policy {

// Returns the delay of a recreation that follows `recreations` others in the current series:
// 0 s, 1 s, 2 s, 4 s … up to the maximum.
Duration RecreationDelay(int32_t recreations, const Options& options);

// Returns when the slot's next pod may be created; the epoch for a slot that never had one.
Time NotBefore(const IndexHistory* index, const Options& options);

}  // namespace tfjob::policy
