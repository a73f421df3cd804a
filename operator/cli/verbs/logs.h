// tfjob logs: the logs of a job's replicas, one after the other, or together as they are written.
#pragma once

#include <optional>
#include <string>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/replica_choice.h"

namespace tfjob::cli {

struct LogsOptions {
  std::string name;
  ReplicaChoice replicas;
  std::string container = "tensorflow";
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Duration> since;
};

// Lines bear their pod's name when there are several pods. With `follow`: of containers that start
// later too, until the job has ended and all logs with it; a stop and broken output end it, with
// kSucceeded. kFailed when there was no log at all, or the server refused.
int Logs(const LogsOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
