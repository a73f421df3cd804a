// Represents the progress of one task of a job. The trainer serves it on its port (service.h). The
// local launcher, the operator and the dashboard read it (client.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::progress {

enum class State {
  kStarting,
  kWaiting,
  kTraining,
  kServing,
  kEvaluating,
  kSaving,
  kFinished,
  kFailed
};
std::string_view Name(State state);  // "training"

// Another task, as seen by this one.
struct Peer {
  std::string task;     // "/job:ps/task:0"
  std::string address;  // "host:port"
  std::string state;    // "connected", "suspected", "stuck", "lost", "unknown"
  double silent_s = 0;  // seconds since its last message

  bool operator==(const Peer&) const = default;
};

// The end of a run. The chief reports it once the last checkpoint is complete, and the evaluator
// once it has evaluated that checkpoint. The chief also reports that the run has failed
// permanently.
struct RunEnd {
  int64_t step = 0;     // of the last checkpoint; for a failed run, the last completed step
  std::string run;      // identifies the job, the attempt and the run without naming them
  std::string failure;  // why the run has failed; "" if it has not

  bool operator==(const RunEnd&) const = default;
};

struct Progress {
  std::string task;  // "/job:worker/task:1"
  State state = State::kStarting;
  std::string waiting_for;  // while waiting: the awaited tasks and the reason
  int64_t step = 0;         // the global step
  int64_t max_steps = 0;    // 0 if unknown
  int64_t epoch = 0;
  double steps_per_s = 0;  // in global steps, over the last report interval
  std::optional<double> loss;
  std::map<std::string, double> metrics;  // "accuracy" → 0.88; from the last report
  std::optional<double> seconds_left;
  std::vector<Peer> peers;
  // Failures that have not stopped the task: "checkpoints" → "the checkpoint of step 9 could not be
  // …".
  std::map<std::string, std::string> problems;
  std::optional<RunEnd> run_end;
  // In the chief: the ends of the earlier runs of this job in which this process has taken part.
  std::vector<RunEnd> earlier_runs;

  bool operator==(const Progress&) const = default;
};

Json ToJson(const Progress& progress);
StatusOr<Progress> ParseProgress(const Json& json);

}  // namespace tfjob::progress
