#include "operator/policy/rules/clean_up.h"

#include <algorithm>

namespace tfjob::policy {
namespace {

// A kubelet reports Running for a moment after the last container has terminated. The logs of such
// a pod must be kept.
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
