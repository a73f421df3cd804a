// Determines the progress of a job from its trainer or from its log.
#pragma once

#include <functional>
#include <string>

#include "operator/cli/verbs/stored_job.h"
#include "runtime/base/mutex.h"
#include "runtime/progress/progress.h"

namespace tfjob::cli {

// Fetches the progress of the task at an address.
using FetchProgress = std::function<StatusOr<progress::Progress>(const std::string& address)>;
FetchProgress AskTrainer();

// Asks the trainer itself at its pod's address. If the pod network is unreachable, as is usual
// outside of the cluster, reads the end of the trainer's log through the API server instead. (The
// API server's proxy to pods speaks only HTTP/1.1, and trainers speak gRPC.) Thread-safe.
class ProgressReader {
 public:
  ProgressReader(const VerbContext& context, FetchProgress fetch)
      : context_(context), fetch_(std::move(fetch)) {}

  // Returns the progress as `tfjob run` prints it, or the reason in parentheses if it is unknown:
  // "step 300/9380, 812 steps/s, loss 0.41, 11s left".
  std::string TextOf(const api::TFJob& job);

 private:
  StatusOr<progress::Progress> Ask(const api::TFJob& job, const objects::Pod& pod,
                                   api::ReplicaType type);
  StatusOr<progress::Progress> ReadLog(const objects::Pod& pod);
  bool Unreachable();

  const VerbContext& context_;
  const FetchProgress fetch_;
  Mutex mutex_;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // consecutive calls
};

}  // namespace tfjob::cli
