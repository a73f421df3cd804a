// Checks invariants of a job, its pods and its services. Some must always hold, and others only
// when nothing changes any more.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/simulation/cluster.h"
#include "tests/simulation/counts.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/protection.h"
#include "tests/simulation/timing.h"

namespace tfjob::simulation {

// Checks one simulation, step by step: call Check() after each step.
class Invariants {
 public:
  // Records how the programs in the pods ended. The caller must keep the record up to date.
  Oracle oracle;
  Delays delays;
  Counts counts;
  Protection protection;
  // Whether a user has deleted the job since it was last created.
  bool job_was_deleted = false;

  // Returns "" if all invariants hold, and otherwise a description of the violation. `is_quiet` is
  // true if the operator has seen all changes so far, and `may_fail` is true if its calls may fail.
  std::string Check(Cluster& cluster, bool is_quiet, bool may_fail);
  // Checks that the job's back-off limit is respected. Call this only when nothing happens in the
  // cluster any more.
  std::string CheckLimit(Cluster& cluster) const;

 private:
  std::string CheckGone(Cluster& cluster);
  std::string CheckStatus(const api::TFJob& job);
  std::string CheckPods(const api::TFJob& job, Cluster& cluster);

  std::optional<api::TFJob> before_;         // the job at the last check
  std::map<std::string, int32_t> attempts_;  // of the existing pods, by UID
};

// Checks that the pods and services are those that the job should have, and that the status
// describes them. Call this only when nothing happens in the cluster any more and no timer is
// pending. Returns "" or a description of the violation.
std::string CheckQuiet(Cluster& cluster);

}  // namespace tfjob::simulation
