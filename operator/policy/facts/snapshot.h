// Contains what was observed of a job at one moment. The objects are shared and immutable, so
// taking a snapshot copies only pointers.
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
  // The pods and services whose controller is this job (by UID), in any order.
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::vector<std::shared_ptr<const objects::Service>> services;
  // The services with this job's labels but no controller. Those with the name of a slot are
  // adopted.
  std::vector<std::shared_ptr<const objects::Service>> orphan_services;
  // The pod groups whose controller is this job.
  std::vector<PodGroup> pod_groups;
  // The job's Workloads of Kubernetes itself (scheduling.k8s.io).
  std::vector<std::shared_ptr<const objects::CustomResource>> workloads;
  // The ids of the operator's keys, from the oldest to the newest.
  std::vector<std::string> key_ids;
  // The key ids on the job's pods that are newer than all of the operator's keys. During a
  // rotation, these keys may be about to appear in the mounted folder of keys.
  std::set<std::string> awaited_key_ids;
  // The job's NetworkPolicy: the policy with the name that the operator gives it, if the job is its
  // controller.
  std::shared_ptr<const objects::CustomResource> network_policy;
  // The apiVersion in which the server offers Workloads; "" if it does not offer them. Set only if
  // the job wants a native gang.
  std::string native_version;
  // The last states, as the watch reported them, of the job's pods that have disappeared. A pod
  // stays in this list until a reconcile that has seen it in this list has written the job's
  // status. Optional. Because of this list, a pod that ended and was deleted before any reconcile
  // saw its end still counts as completed or failed.
  std::vector<std::shared_ptr<const objects::Pod>> departed;
  // Names of the nodes that are not Ready, or are gone; nullopt if nodes are not observed.
  std::optional<std::set<std::string>> lost_nodes;
  // The history of the job, which the loop owns; nullptr if there is none.
  const History* history = nullptr;
};

}  // namespace tfjob::policy
