// Formats the state of a running job as text for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/progress/progress.h"

namespace tfjob::view {

// Counts the pods of one replica type in each state.
struct ReplicaCounts {
  int pending = 0, running = 0, succeeded = 0, failed = 0, terminating = 0;
};

struct JobView {
  std::string name;
  std::string state;  // as returned by StateOf
  std::map<api::ReplicaType, ReplicaCounts> replicas;
  std::optional<progress::Progress> training;    // of the chief, as last reported
  std::optional<progress::Progress> evaluation;  // of the evaluator
};

// Returns the newest condition that is True, such as "Running"; "" if there is none yet.
std::string StateOf(const api::TFJobStatus& status);

JobView MakeView(const api::TFJob& job,
                 const std::vector<std::shared_ptr<const objects::Pod>>& pods);

// Returns text such as "chief 1 running, worker 1 running 1 pending".
std::string ReplicasText(const JobView& view);
// Returns text such as "step 300/9380, 812 steps/s, loss 0.4121, accuracy 0.852, 11s left"; "" if
// the progress is unknown.
std::string ProgressText(const JobView& view);
// Returns the problems that do not stop the job, such as "the checkpoint of step 9 could not be
// saved: …".
std::vector<std::string> Problems(const JobView& view);
// Returns one line for a terminal, of at most `width` characters.
std::string LiveLine(const JobView& view, size_t width);

// Reports the failures and restarts of containers, and why containers are waiting, each only once.
class PodReporter {
 public:
  // Returns the lines to report for this state of the pod, given the states reported before.
  std::vector<std::string> Report(const objects::Pod& pod);

 private:
  struct Seen {
    objects::ContainerStatus::State state = objects::ContainerStatus::State::kWaiting;
    std::string text;
    int32_t restarts = 0;
  };
  std::map<std::string, Seen> seen_;  // by pod UID and container
};

// Returns one line for each condition that is True in `now` and was not True with the same reason
// in `before`, such as "Running: TFJob default/x is running.".
std::vector<std::string> NewConditions(const api::TFJobStatus& before, const api::TFJobStatus& now);

}  // namespace tfjob::view
