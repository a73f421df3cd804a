// Decides whether the job's NetworkPolicy should exist. The policy is created before the job's
// pods, and protects them until the last of them is gone. The pods wait until the policy exists.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// If the job asks for a policy that this operator does not create, makes its pods wait.
void HoldBackUnprotected(Draft& draft);

// Creates the policy, changes it if it does not have the wanted rules, or deletes it if the job
// wants none. Creates nothing while the pods wait for their queue.
// Repeated changes are delayed like the recreations of a replica, because something else may keep
// changing the policy back. No pods are created until the policy has been changed, so call this
// before WantPods. If the pods wait because the operator creates no policies, reports this.
void WantNetworkPolicy(Draft& draft);

// If the job is suspended or has ended, deletes the policy once none of the job's pods are left, or
// immediately if the job wants no policy.
void DropUnusedNetworkPolicy(Draft& draft);

}  // namespace tfjob::policy
