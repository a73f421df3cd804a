// Holds what was observed of one job at one moment. Plain values over shared, immutable objects:
// taking a snapshot copies pointers.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

struct History;

struct PodGroup {
  GangScheduler scheduler = GangScheduler::kNone;
  std::shared_ptr<const objects::CustomResource> object;
};

struct Snapshot {
  // Pods and services whose controller is this job, by UID. In any order.
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::vector<std::shared_ptr<const objects::Service>> services;
  // Services with this job's labels and no controller; those with a wanted name are adopted.
  std::vector<std::shared_ptr<const objects::Service>> orphan_services;
  // Pod groups whose controller is this job.
  std::vector<PodGroup> pod_groups;
  // Kubernetes' own Workloads (scheduling.k8s.io).
  std::vector<std::shared_ptr<const objects::CustomResource>> workloads;
  // The apiVersion under which the server has Workloads, "" if it has none; known if the
  // job wants it.
  std::string native_version;
  // Last states of the job's pods that have gone since the last acknowledged pass, as reported by
  // the watch (optional): a pod that exited with 0 and was garbage-collected before any reconcile
  // saw it still counts as completed.
  std::vector<std::shared_ptr<const objects::Pod>> departed;
  // Names of nodes that are not Ready or gone; nullopt if nodes are not observed.
  std::optional<std::set<std::string>> lost_nodes;
  // Owned by the loop; nullptr if nothing is remembered.
  const History* history = nullptr;
};

}  // namespace tfjob::policy
