// What a person wants to know of a running job, as text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/progress/progress.h"

namespace tfjob::view {

// How many pods of one type are in which state.
struct ReplicaCounts {
  int pending = 0, running = 0, succeeded = 0, failed = 0, terminating = 0;
};

struct JobView {
  std::string name;
  std::string state;  // StateOf the job
  std::map<api::ReplicaType, ReplicaCounts> replicas;
  std::optional<progress::Progress> training;    // of the chief, as last told
  std::optional<progress::Progress> evaluation;  // of the evaluator
};

// The newest condition that is True: "Running"; "" before the first.
std::string StateOf(const api::TFJobStatus& status);

JobView MakeView(const api::TFJob& job,
                 const std::vector<std::shared_ptr<const objects::Pod>>& pods);

// "chief 1 running, worker 1 running 1 pending".
std::string ReplicasText(const JobView& view);
// "step 300/9380, 812 steps/s, loss 0.4121, accuracy 0.852, 11s left"; "" when nothing is known.
std::string ProgressText(const JobView& view);
// One line for a terminal, at most `width` characters.
std::string LiveLine(const JobView& view, size_t width);

// Says what happens to the containers of pods: ends that are no success, waits for a reason,
// restarts. Each once.
class PodReporter {
 public:
  // The lines that this state of the pod gives after the states before it.
  std::vector<std::string> Report(const objects::Pod& pod);

 private:
  struct Seen {
    objects::ContainerStatus::State state = objects::ContainerStatus::State::kWaiting;
    std::string text;
    int32_t restarts = 0;
  };
  std::map<std::string, Seen> seen_;  // by pod UID and container
};

// The conditions that `now` has and `before` has not, as "Running: TFJob default/x is running.".
std::vector<std::string> NewConditions(const api::TFJobStatus& before, const api::TFJobStatus& now);

}  // namespace tfjob::view
