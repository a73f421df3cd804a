#include "operator/policy/rules/dynamic_worker.h"

namespace tfjob::policy {

bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type) {
  return job.spec.enable_dynamic_worker && type == api::ReplicaType::kWorker;
}

}  // namespace tfjob::policy
