// TF_CONFIG of every replica of a job (facts 2.3).
#pragma once

#include <map>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"
#include "operator/render/address.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::render {

// A job's addresses, worked out once; const calls are thread-safe.
//
// Static: all tasks of all types in the spec, the evaluator among them, the same for everyone;
// environment "cloud". Dynamic (enableDynamicWorker): a task knows itself and the servers: a worker
// {worker: {i: own}, ps: all}; a ps {worker: {}, ps: [own]}; a chief or master {worker: {}, ps:
// all, chief: [own]}; an evaluator {worker: {}, ps: all, chief: all, evaluator: [own]}. Without
// servers, `ps` is null for a worker and an empty list for the others.
class ClusterSpec {
 public:
  ClusterSpec(const api::TFJob& job, const AddressScheme& address);

  // The environment variable's text, byte for byte as the Training Operator writes it.
  std::string TfConfigOf(const policy::Slot& slot) const;
  // Dynamic: the type of the job's chief, which no worker's TF_CONFIG names; static: "".
  std::string ChiefType() const;

 private:
  cluster::Cluster DynamicClusterOf(const policy::Slot& slot) const;

  bool dynamic_;
  std::map<api::ReplicaType, cluster::Job> jobs_;
  std::string static_cluster_;  // printed, since it is the same for all
};

}  // namespace tfjob::render
