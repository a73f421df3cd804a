#include "operator/api/replicas.h"

#include <nlohmann/json.hpp>

namespace tfjob::api {

int32_t Replicas(const TFJob& job, ReplicaType type) {
  const auto found = job.spec.replicas.find(type);
  return found == job.spec.replicas.end() ? 0 : found->second.replicas.value_or(1);
}

int64_t TotalReplicas(const TFJob& job) {
  int64_t total = 0;
  for (const auto& [type, spec] : job.spec.replicas) total += spec.replicas.value_or(1);
  return total;
}

bool IsLocal(const TFJob& job) {
  return TotalReplicas(job) == 1;
}

RestartPolicy EffectiveRestartPolicy(const ReplicaSpec& spec) {
  return spec.restart_policy.value_or(RestartPolicy::kNever);
}

const Json* Containers(const Json& pod_template) {
  const JsonField containers = JsonField(pod_template)["spec"]["containers"];
  if (!containers.present() || !containers.value()->is_array()) return nullptr;
  return containers.value();
}

const Json* TensorflowContainer(const Json& pod_template) {
  const Json* containers = Containers(pod_template);
  if (containers == nullptr) return nullptr;
  for (const Json& container : *containers) {
    const Json* name = JsonField(container)["name"].value();
    if (name != nullptr && *name == kContainerName) return &container;
  }
  return nullptr;
}

int32_t TFJobPort(const TFJob& job, ReplicaType type) {
  const auto found = job.spec.replicas.find(type);
  if (found == job.spec.replicas.end() || !found->second.pod_template) return kDefaultPort;
  const Json* container = TensorflowContainer(*found->second.pod_template);
  if (container == nullptr) return kDefaultPort;
  const auto ports = JsonField(*container)["ports"].Elements();
  if (!ports.ok()) return kDefaultPort;
  for (const JsonField& port : *ports) {
    const Json* name = port["name"].value();
    if (name == nullptr || *name != kPortName) continue;
    return port["containerPort"].Int32().value_or(kDefaultPort);
  }
  return kDefaultPort;
}

}  // namespace tfjob::api
