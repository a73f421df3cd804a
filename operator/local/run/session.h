// Carries out one `tfjob run`: starts the cluster, reports what happens, waits for the jobs to end,
// and takes everything down.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/local/run/local_cluster.h"
#include "operator/local/run/log_follower.h"
#include "operator/local/run/progress_poller.h"
#include "operator/local/run/run.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"
#include "operator/view/screen.h"

namespace tfjob::local {

class Session {
 public:
  Session(const RunOptions& options, const Workload& workload, process::Options process,
          view::Console& console);

  // Runs until every job has ended or `stop` is requested. Requests it with SIGPIPE if the output
  // can no longer be written.
  Status Run(StopSource& stop);
  bool all_succeeded() const;

 private:
  // A job as last seen. Jobs that were deleted after they ended stay here.
  struct JobState {
    const Workload::Job* workload = nullptr;
    api::TFJob job;
    std::string training_address, evaluation_address;  // "": unknown
  };

  Status Start();
  void Watch(StopSource& stop);
  bool Finished() const;
  void TellChanges();
  void NoteFailures(const objects::Pod& pod);
  void TellProgress();
  void Tell(const std::string& name, const std::string& text);
  Status TakeDown(bool stopped);
  void TellEnd(const JobState& state);
  // Prints the last lines of the logs of failed pods.
  void TellFailures(const JobState& state);
  std::string LastAccuracy(const JobState& state) const;
  view::JobView ViewOf(const JobState& state);
  std::string Elapsed() const;

  const RunOptions& options_;
  const Workload& workload_;
  const process::Options process_;
  view::Screen screen_;
  LogFollower follower_;
  view::PodReporter pods_reporter_;
  std::map<std::string, std::set<std::string>> failed_;  // logs of failed containers, by job name
  std::map<std::string, JobState> states_;               // by namespace/name
  Duration started_{0}, reported_{0};
  std::map<std::string, std::string> told_;  // the last progress line per job

  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<view::ObjectCache> jobs_, pods_;
  std::unique_ptr<ProgressPoller> poller_;
};

}  // namespace tfjob::local
