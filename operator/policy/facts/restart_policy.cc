#include "operator/policy/facts/restart_policy.h"

#include <array>

namespace tfjob::policy {
namespace {

using enum api::RestartPolicy;

// The rows of the table, in the order of api::RestartPolicy.
constexpr auto kBehaviors = std::to_array<RestartBehavior>({
    {.policy = kNever,
     .restarts_replicas = false,
     .exit_code_decides = false,
     .counts_container_restarts = false,
     .completes_for_good = true,
     .pod_policy = kNever},
    {.policy = kAlways,
     .restarts_replicas = true,
     .exit_code_decides = false,
     .counts_container_restarts = true,
     .completes_for_good = false,
     .pod_policy = kAlways},
    {.policy = kOnFailure,
     .restarts_replicas = true,
     .exit_code_decides = false,
     .counts_container_restarts = true,
     .completes_for_good = true,
     .pod_policy = kOnFailure},
    // The operator restarts the replica, because the kubelet cannot base restarts on the exit code.
    {.policy = kExitCode,
     .restarts_replicas = true,
     .exit_code_decides = true,
     .counts_container_restarts = true,
     .completes_for_good = true,
     .pod_policy = kNever},
});

constexpr bool IsInOrder() {
  for (size_t i = 0; i < kBehaviors.size(); ++i) {
    if (kBehaviors[i].policy != static_cast<api::RestartPolicy>(i)) return false;
  }
  return kBehaviors.size() == api::kRestartPolicies.size();
}
static_assert(IsInOrder(), "one row per restart policy, in the order of the enum");

}  // namespace

const RestartBehavior& BehaviorOf(api::RestartPolicy policy) {
  return kBehaviors[static_cast<size_t>(policy)];
}

}  // namespace tfjob::policy
