// Determines the progress of a job from its trainer or from the trainer's log.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/cli/verbs/stored_job.h"
#include "runtime/base/mutex.h"
#include "runtime/progress/progress.h"
#include "runtime/wire/job_key.h"

namespace tfjob::cli {

// Fetches the progress of the task at `address`, whose job has the key `key`.
using FetchProgress = std::function<StatusOr<progress::Progress>(
    const std::string& address, const std::optional<wire::JobKey>& key)>;
FetchProgress AskTrainer();

// Queries the trainer at its pod's address, with the key from the pod's environment. Trainers
// usually do not answer from outside the cluster, where the pod network is unreachable. In this
// case, reads at most 1 MiB from the end of the trainer's log through the API server. (The API
// server's proxy to pods supports only HTTP/1.1, but trainers use gRPC.) Thread-safe.
class ProgressReader {
 public:
  ProgressReader(const VerbContext& context, FetchProgress fetch)
      : context_(context), fetch_(std::move(fetch)) {}

  // Returns the progress as `tfjob run` prints it ("step 300/9380, 812 steps/s, loss 0.41, 11s
  // left") or, if it is unknown, the reason in parentheses.
  std::string TextOf(const api::TFJob& job);

 private:
  StatusOr<progress::Progress> Ask(const api::TFJob& job, const objects::Pod& pod,
                                   api::ReplicaType type);
  StatusOr<progress::Progress> ReadLog(const objects::Pod& pod);
  bool Unreachable();

  const VerbContext& context_;
  const FetchProgress fetch_;
  Mutex mutex_;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // consecutive failed calls
};

}  // namespace tfjob::cli
