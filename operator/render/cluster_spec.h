// Builds the TF_CONFIG of every replica of a job, in the form of Kubeflow's Training Operator.
#pragma once

#include <map>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"
#include "operator/render/address.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::render {

// Holds a job's addresses, computed once; const calls are thread-safe.
//
// Static: all tasks of all types in the spec, including the evaluator, the same for every
// task; environment "cloud".
//
// Dynamic (enableDynamicWorker): a task knows itself and the parameter servers:
//
//   worker           {worker: {i: own}, ps: all}
//   ps               {worker: {}, ps: [own]}
//   chief or master  {worker: {}, ps: all, chief: [own]}
//   evaluator        {worker: {}, ps: all, chief: all, evaluator: [own]}
//
// Without parameter servers, `ps` is null for a worker and an empty list for the others.
class ClusterSpec {
 public:
  ClusterSpec(const api::TFJob& job, const AddressScheme& address);

  // Returns the text of the environment variable, byte for byte as the Training Operator writes it.
  std::string TfConfigOf(const policy::Slot& slot) const;
  // Dynamic: returns the type of the job's chief, which no worker's TF_CONFIG names. Static: "".
  std::string ChiefType() const;

 private:
  cluster::Cluster DynamicClusterOf(const policy::Slot& slot) const;

  bool dynamic_;
  std::map<api::ReplicaType, cluster::Job> jobs_;
  std::string static_cluster_;  // printed once, since it is the same for all
};

}  // namespace tfjob::render
