#include "tests/simulation/labels.h"

#include <string>

#include "operator/api/names.h"

namespace tfjob::simulation {

bool IsOf(const objects::ObjectMeta& metadata, const api::TFJob& job) {
  const objects::OwnerReference* controller = metadata.controller();
  return controller != nullptr && controller->uid == job.metadata.uid;
}

int32_t AttemptOf(const objects::Pod& pod) {
  const std::string label(pod.metadata.label(api::kAttemptLabel));
  return label.empty() ? 0 : std::stoi(label);
}

}  // namespace tfjob::simulation
