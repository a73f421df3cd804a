#include "operator/policy/clean_up.h"

namespace tfjob::policy {

bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy) {
  if (pod.metadata.terminating()) return false;
  switch (policy) {
    case api::CleanPodPolicy::kNone:
      return false;
    case api::CleanPodPolicy::kRunning:
      return pod.phase == objects::PodPhase::kRunning || pod.phase == objects::PodPhase::kPending;
    case api::CleanPodPolicy::kAll:
      return true;
  }
  return false;
}

}  // namespace tfjob::policy
