// How long the recreation of one index waits.
#pragma once

#include "operator/policy/facts/history.h"
#include "operator/policy/facts/options.h"

namespace tfjob::policy {

// For the recreation after `recreations` others in the present series: 0 s, 1 s, 2 s, 4 s … up to
// the maximum.
Duration RestartDelay(int32_t recreations, const Options& options);

// When the slot's next pod may be created; the epoch for a slot that never had one.
Time NotBefore(const IndexHistory* index, const Options& options);

}  // namespace tfjob::policy
