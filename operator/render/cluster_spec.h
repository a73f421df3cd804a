// Builds the TF_CONFIG of every replica of a job, in the form that Kubeflow's Training Operator
// uses.
#pragma once

#include <map>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"
#include "operator/render/address.h"
#include "runtime/cluster/address_pattern.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::render {

// Contains the addresses of a job's tasks, which are computed once. Const calls are thread-safe.
//
// In static mode, every task gets the same cluster, with all tasks of all types in the spec,
// including the evaluator. The environment is "cloud".
//
// In dynamic mode (enableDynamicWorker), a task gets only the addresses that it needs:
//
//   worker           {worker: {i: own}, ps: all}
//   ps               {worker: {}, ps: [own]}
//   chief or master  {worker: {}, ps: all, chief: [own]}
//   evaluator        {worker: {}, ps: all, chief: all, evaluator: [own]}
//
// If there are no parameter servers, `ps` is null for a worker and an empty list for any other
// task.
class ClusterSpec {
 public:
  ClusterSpec(const api::TFJob& job, const AddressScheme& address);

  // Returns the value of TF_CONFIG, identical byte for byte to what the Training Operator writes.
  std::string TfConfigOf(const policy::Slot& slot) const;
  // Returns the size in bytes of the job's longest TF_CONFIG, which is that of the last replica of
  // some type.
  size_t LongestTfConfig() const;
  // In dynamic mode, returns the type of the task that acts as chief (chief, master or worker),
  // which a worker's TF_CONFIG does not contain. In static mode, returns "".
  std::string ChiefType() const;
  // In dynamic mode, returns the addresses of the tasks that train, or evaluate, as patterns that
  // also cover workers that may be added later (TFJOB_ADDRESS_PATTERNS). In static mode, returns
  // "".
  std::string AddressPatterns() const;

 private:
  cluster::Cluster DynamicClusterOf(const policy::Slot& slot) const;

  bool dynamic_;
  std::map<api::ReplicaType, cluster::Job> jobs_;
  cluster::AddressPatterns patterns_;  // in dynamic mode only
  std::string static_cluster_;         // the same for all tasks, so it is printed only once
};

}  // namespace tfjob::render
