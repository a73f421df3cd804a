// Decides whether the job's NetworkPolicy should exist. The policy is created before the job's
// pods, which wait for it, and is kept until the last pod is gone.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// If the job requests a policy but this operator creates none, makes the job's pods wait.
void HoldBackUnprotected(Draft& draft);

// Creates the policy, changes it if it does not have the wanted rules, or deletes it if the job
// wants none. Does not create the policy while the pods wait for their queue. Repeated changes are
// delayed like the recreations of a replica, because something else may keep undoing them. Until a
// change has been made, no pods are created, so call this before WantPods. If the pods wait because
// the operator creates no policies, reports this.
void WantNetworkPolicy(Draft& draft);

// If the job is suspended or has ended, deletes the policy: immediately if the job wants no policy,
// and otherwise when none of the job's pods are left.
void DropUnusedNetworkPolicy(Draft& draft);

}  // namespace tfjob::policy
