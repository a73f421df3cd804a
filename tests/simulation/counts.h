// Checks that failures are counted, and that the back-off limit is applied to the count. Ignores
// failures that the operator may miss because it is not running or does not see the pod in time.
// Also ignores failures of jobs with restartScope Job, because one restart may follow several
// failures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/objects/pod.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"
#include "tests/simulation/cluster.h"

namespace tfjob::simulation {

class Counts {
 public:
  // Records that the program of the pod failed, without having been stopped. Call this before the
  // failure is written to the server.
  void OnFailure(Cluster& cluster, const objects::Pod& pod, int code);

  // Checks that each failure is counted in the job's restarts once the operator has had time to do
  // so. `is_settled` is true if the operator has seen all changes so far and none of its calls
  // fails. Returns "" or a description of the violation.
  std::string Check(Cluster& cluster, bool is_settled);

 private:
  struct Failure {
    api::ReplicaType type;
    Duration at{0};
  };
  // Returns whether the operator may forget failures that it has not counted yet, and so never
  // count them.
  bool MayBeForgotten(Cluster& cluster, const api::TFJob& job) const;
  void Settle(Duration now);

  std::string job_;  // the UID of the job
  int64_t generation_ = 0;
  int starts_ = 0;  // the number of operators that have been started
  std::vector<Failure> pending_;
  std::map<api::ReplicaType, int64_t> least_;  // minimum number of restarts in the status, by type
};

// Checks a job that failed because of its back-off limit: it may have had more restarts than the
// limit allows. At most `restarts` restarts happened; `in_place` of them were restarts of
// containers in place.
std::string CheckBackoffLimit(const api::TFJob& job, int64_t restarts, int64_t in_place);
// Checks that a job does not keep running beyond its back-off limit. Call this only after the
// cluster has become quiet, and only if no container of the job was restarted in place. (If the job
// is suspended, restarts of containers are counted, but do not end the job before its next restart;
// backoff_limit.h explains why.)
std::string CheckWithinLimit(const api::TFJob& job);

}  // namespace tfjob::simulation
