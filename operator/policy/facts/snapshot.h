// What was observed of one job at one moment. Plain values over shared, immutable objects: taking
// one copies pointers.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "operator/policy/facts/history.h"

namespace tfjob::policy {

struct PodGroup {
  GangScheduler scheduler = GangScheduler::kNone;
  std::shared_ptr<const objects::CustomResource> object;
};

struct Snapshot {
  // Pods and services whose controller is this job, by UID. Any order.
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::vector<std::shared_ptr<const objects::Service>> services;
  // Services with this job's labels and no controller at all; those of a wanted name are adopted.
  std::vector<std::shared_ptr<const objects::Service>> orphan_services;
  // Those whose controller is this job.
  std::vector<PodGroup> pod_groups;
  // Kubernetes' own (scheduling.k8s.io).
  std::vector<std::shared_ptr<const objects::CustomResource>> workloads;
  // The apiVersion under which the server has them, "" when it has none; known where the job wants it.
  std::string native_version;
  // Last states of the job's pods that are gone since the last acknowledged pass, as the watch told
  // (optional): a pod that ended with 0 and was garbage-collected before anybody looked still
  // counts as completed.
  std::vector<std::shared_ptr<const objects::Pod>> departed;
  // Names of nodes that are not Ready or gone; nothing when nodes are not observed.
  std::optional<std::set<std::string>> lost_nodes;
  // Owned by the loop; nullptr when nothing is remembered.
  const History* history = nullptr;
};

}  // namespace tfjob::policy
