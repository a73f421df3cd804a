#include "operator/policy/rules/clean_up.h"

#include <algorithm>

namespace tfjob::policy {
namespace {

// Returns whether all containers have exited with 0. The kubelet then still reports phase Running
// for a moment, but the pod must already be kept for its logs.
bool HasSucceeded(const objects::Pod& pod) {
  return !pod.containers.empty() &&
         std::all_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
           return container.state == objects::ContainerStatus::State::kTerminated &&
                  container.exit_code == 0;
         });
}

}  // namespace

bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy) {
  if (pod.metadata.terminating()) return false;
  switch (policy) {
    case api::CleanPodPolicy::kNone:
      return false;
    case api::CleanPodPolicy::kRunning:
      return (pod.phase == objects::PodPhase::kRunning && !HasSucceeded(pod)) ||
             pod.phase == objects::PodPhase::kPending;
    case api::CleanPodPolicy::kAll:
      return true;
  }
  return false;
}

}  // namespace tfjob::policy
