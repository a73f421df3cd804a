// Checks the times at which an operator acts: the delays before recreations, the deadline of the
// job and its time to live.
#pragma once

#include <map>
#include <set>
#include <string>

#include "operator/policy/facts/slot.h"
#include "tests/simulation/cluster.h"

namespace tfjob::simulation {

// Checks that no pod is recreated too early. Considers only events that certainly happened, so the
// required delays are lower bounds.
class Delays {
 public:
  // Checks the pods. Call this after each step. `is_quiet` is true if the operator has seen all
  // changes so far. Returns "" or a description of the violation.
  std::string Check(Cluster& cluster, bool is_quiet);

 private:
  struct Slot {
    std::string newest;          // UID of the newest pod
    std::set<std::string> seen;  // UIDs of the pods that the operator has certainly seen alive
    Time last_alive;             // when the newest pod was last alive
  };
  // Returns whether the operator may have forgotten how often pods were recreated.
  bool MayHaveForgotten(Cluster& cluster, const api::TFJob& job) const;
  std::string CheckPod(const objects::Pod& pod, Time now, bool is_quiet);

  std::map<policy::Slot, Slot> slots_;
  std::string job_;             // the UID of the job
  int64_t job_generation_ = 0;  // changes with the spec
  int starts_ = 0;              // the number of operators that have been started
};

// Checks that a job that failed because of its deadline did not fail before the deadline. Returns
// "" or a description of the violation.
std::string CheckFailure(const api::TFJob& job);

// Checks that the deadline and the time to live have taken effect. Call this only when nothing
// happens in the cluster any more and the operator has noticed every change to its clock.
std::string CheckDeadlines(Cluster& cluster);

}  // namespace tfjob::simulation
