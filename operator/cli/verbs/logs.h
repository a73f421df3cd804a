// tfjob logs: prints the logs of a job's replicas one after the other, or together as they
// are written.
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

// Prints the logs. If there are several pods, each line carries the name of its pod. With `follow`,
// also prints the logs of containers that start later, until the job and all its logs have ended; a
// stop request or broken output ends it with kSucceeded. Returns kFailed if there was no log at all
// or the server refused.
int Logs(const LogsOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
