// How far a job has come, from whoever can tell.
#pragma once

#include <functional>
#include <string>

#include "operator/cli/verbs/stored_job.h"
#include "runtime/base/mutex.h"
#include "runtime/progress/progress.h"

namespace tfjob::cli {

// Asks the task at an address.
using FetchProgress = std::function<StatusOr<progress::Progress>(const std::string& address)>;
FetchProgress AskTrainer();

// Asks the trainer itself, at its pod's address; where the pod network cannot be reached from here,
// which is usual outside of the cluster, reads the end of its log, which the API server gives. (The
// API server's proxy to pods speaks HTTP/1.1 only, and trainers speak gRPC.) Thread-safe.
class ProgressTeller {
 public:
  ProgressTeller(const Surroundings& around, FetchProgress fetch)
      : around_(around), fetch_(std::move(fetch)) {}

  // As `tfjob run` writes it: "step 300/9380, 812 steps/s, loss 0.41, 11s left". When nothing can
  // be told, the reason in brackets.
  std::string Tell(const api::TFJob& job);

 private:
  StatusOr<progress::Progress> Ask(const api::TFJob& job, const objects::Pod& pod,
                                   api::ReplicaType type);
  StatusOr<progress::Progress> ReadLog(const objects::Pod& pod);
  bool Unreachable();

  const Surroundings& around_;
  const FetchProgress fetch_;
  Mutex mutex_;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
};

}  // namespace tfjob::cli
