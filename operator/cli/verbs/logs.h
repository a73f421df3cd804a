// tfjob logs: prints the logs of a job's replicas one after another, or all together as they are
// written.
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

// Prints the logs. If there are several pods, each line is prefixed with the name of its pod. With
// `follow`, prints lines as they are written, including those of containers that start later, until
// the job and all its logs have ended. A stop request or a broken output ends the printing early,
// with kSucceeded. Returns kFailed if the job or its pods cannot be read, the job lacks a chosen
// replica, or there are too many logs to follow. Without `follow`, also returns kFailed if no log
// could be printed.
int Logs(const LogsOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
