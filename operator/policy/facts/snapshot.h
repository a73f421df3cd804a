// Holds what was observed of a job at one moment. The objects are shared and immutable, so taking a
// snapshot only copies pointers.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/objects/pod.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"

namespace tfjob::objects {
struct CustomResource;
struct Service;
}  // namespace tfjob::objects

namespace tfjob::policy {

struct History;

struct PodGroup {
  GangScheduler scheduler = GangScheduler::kNone;
  std::shared_ptr<const objects::CustomResource> object;
};

struct Snapshot {
  // The time of the snapshot on the steady clock (Clock::Monotonic). Delays are measured on this
  // clock, so that setting the wall clock does not change them.
  Duration steady_now{0};
  // Pods and services whose controller is this job (by UID), in any order.
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::vector<std::shared_ptr<const objects::Service>> services;
  // Services with this job's labels but no controller. Those with the name of a slot are adopted.
  std::vector<std::shared_ptr<const objects::Service>> orphan_services;
  // Pod groups whose controller is this job.
  std::vector<PodGroup> pod_groups;
  // Kubernetes' own Workloads (scheduling.k8s.io).
  std::vector<std::shared_ptr<const objects::CustomResource>> workloads;
  // The ids of the operator's keys, from the oldest to the newest.
  std::vector<std::string> key_ids;
  // The key ids on the job's pods that are newer than all of the operator's keys. They may be about
  // to appear in the mounted folder of keys, as during a rotation.
  std::set<std::string> awaited_key_ids;
  // The job's NetworkPolicy, if the job is its controller and the policy has the name that the
  // operator gives it.
  std::shared_ptr<const objects::CustomResource> network_policy;
  // The apiVersion in which the server offers Workloads; "" if it does not offer them. Set only if
  // the job wants a native gang.
  std::string native_version;
  // The last states, as the watch reported them, of the job's pods that have disappeared. A pod
  // stays in this list until a reconcile that saw it there has written the job's status. Optional.
  // With this list, a pod that ended and was deleted before any reconcile saw its end still counts
  // as completed or failed.
  std::vector<std::shared_ptr<const objects::Pod>> departed;
  // Names of the nodes that are not Ready, or are gone; nullopt if nodes are not observed.
  std::optional<std::set<std::string>> lost_nodes;
  // Owned by the loop; nullptr if there is no history.
  const History* history = nullptr;
};

}  // namespace tfjob::policy
