#include "operator/api/defaults.h"

#include <nlohmann/json.hpp>

#include "operator/api/replicas.h"

namespace tfjob::api {
namespace {

// Returns the index of the container that gets the port; nullopt if the template does not have the
// shape of a pod.
std::optional<size_t> ListeningContainer(const Json& pod_template) {
  const Json* containers = Containers(pod_template);
  if (containers == nullptr || containers->empty()) return std::nullopt;
  const Json* tensorflow = TensorflowContainer(pod_template);
  const Json* chosen = tensorflow == nullptr ? &containers->front() : tensorflow;
  if (!chosen->is_object()) return std::nullopt;
  return chosen - &containers->front();
}

bool NeedsPort(const Json& container) {
  const auto ports = JsonField(container)["ports"].Elements();
  if (!ports.ok()) return false;
  for (const JsonField& port : *ports) {
    const Json* name = port["name"].value();
    if (name != nullptr && *name == kPortName) return false;
  }
  return true;
}

void AddPort(ReplicaSpec& spec) {
  if (!spec.pod_template) return;
  const std::optional<size_t> index = ListeningContainer(*spec.pod_template);
  if (!index || !NeedsPort((*Containers(*spec.pod_template))[*index])) return;
  Json changed = *spec.pod_template;
  Json& ports = changed["spec"]["containers"][*index]["ports"];
  ports.push_back({{"name", kPortName}, {"containerPort", kDefaultPort}});
  spec.pod_template = std::make_shared<const Json>(std::move(changed));
}

}  // namespace

void SetDefaults(TFJob& job) {
  auto& clean_pod_policy = job.spec.run_policy.clean_pod_policy;
  if (!clean_pod_policy) clean_pod_policy = CleanPodPolicy::kNone;
  for (auto& [type, spec] : job.spec.replicas) {
    if (!spec.replicas) spec.replicas = 1;
    spec.restart_policy = EffectiveRestartPolicy(spec);
    AddPort(spec);
  }
}

}  // namespace tfjob::api
