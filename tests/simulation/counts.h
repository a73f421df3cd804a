// Checks that failures are counted, and that the back-off limit is applied to the count. Does not
// check failures that the operator may miss because it is not running or does not see the pod in
// time, nor failures of jobs with restartScope Job, because one restart can be the answer to
// several failures.
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
  // Records that the program of the pod failed on its own. Call this before the failure is written
  // to the server.
  void OnFailure(Cluster& cluster, const objects::Pod& pod, int code);

  // Checks that each failure is counted in the job's restarts once the operator has had time to do
  // so. `is_settled` is true if the operator has seen everything so far and none of its calls
  // fails. Returns "" or a description of the violation.
  std::string Check(Cluster& cluster, bool is_settled);

 private:
  struct Failure {
    api::ReplicaType type;
    Duration at{0};
  };
  // Returns whether the operator may never count the failures that it has not counted yet.
  bool MayBeForgotten(Cluster& cluster, const api::TFJob& job) const;
  void Settle(Duration now);

  std::string job_;  // its UID
  int64_t generation_ = 0;
  int starts_ = 0;  // of operators
  std::vector<Failure> pending_;
  std::map<api::ReplicaType, int64_t> least_;  // restarts that the status must have, by type
};

// A job that failed because of its back-off limit must have had more restarts than the limit
// allows. Checks that this is possible, given that at most `restarts` restarts happened, of which
// `in_place` were restarts of containers in place.
std::string CheckBackoffLimit(const api::TFJob& job, int64_t restarts, int64_t in_place);
// Checks that a job does not keep running beyond its back-off limit. Call this only after the
// cluster has become quiet, and only if no container of the job was restarted in place. (A
// suspension counts the restarts of containers without ending the job, which keeps running until
// its next restart: backoff_limit.h explains why.)
std::string CheckWithinLimit(const api::TFJob& job);

}  // namespace tfjob::simulation
