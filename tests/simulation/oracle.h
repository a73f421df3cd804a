// Records what actually happened to the programs in the pods of a simulation, and compares the
// job's status with this record.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::simulation {

class Oracle {
 public:
  // OnExit records that the program of the pod exited; `stopped` is true if it exited because it
  // was asked to stop. OnContainerRestart records that the kubelet restarted the pod's container in
  // place. Pods that belong to no job are ignored.
  void OnExit(const objects::Pod& pod, int code, bool stopped);
  void OnContainerRestart(const objects::Pod& pod);

  // Records that a user suspended the job, or created it suspended.
  void OnSuspend(const std::string& job_uid) { ++lives_[job_uid].suspensions; }

  // The incidents of a job that events may report.
  struct Causes {
    int64_t exits = 0;        // how often programs exited, for any reason
    int64_t suspensions = 0;  // how often the job was suspended
    int64_t in_place = 0;     // how often a container was restarted in place
  };
  Causes CausesOf(const std::string& job_uid) const;

  // Checks that a replica counts as completed, and the job as Succeeded, only if the relevant
  // programs exited with 0 without having been stopped. Also checks that no more restarts are
  // counted than happened, and that the job does not fail too early because of its back-off limit.
  // `before` is the job at the previous check. Returns "" or a description of the violation.
  std::string Check(const std::optional<api::TFJob>& before, const api::TFJob& job) const;

 private:
  using Run = std::pair<policy::Slot, int32_t>;  // a slot and an attempt

  struct Life {
    std::set<Run> done;
    std::map<api::ReplicaType, int64_t> restarts;  // failures and restarts of containers
    int64_t exits = 0;
    int64_t suspensions = 0;
    int64_t failures = 0;
    int64_t in_place = 0;
  };

  static std::string CheckCompleted(const api::TFJob& job, const Life& life);
  static std::string CheckSucceeded(const api::TFJob& job, const Life& life);
  static std::string CheckRestarts(const api::TFJob& job, const Life& life);

  std::map<std::string, Life> lives_;  // by the job's UID
};

}  // namespace tfjob::simulation
