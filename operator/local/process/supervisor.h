// Runs one pod and its processes. Used only by the runner's thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "operator/local/process/guardian.h"
#include "operator/local/process/launch.h"
#include "operator/local/process/lifecycle.h"
#include "operator/local/process/oom.h"
#include "operator/local/process/options.h"
#include "operator/local/process/volumes.h"

namespace tfjob::process {

// Contains what all pods share. The referenced objects must outlive the pods.
struct Shared {
  client::Client& client;
  const RunnerOptions& options;
  Guardian& guardian;
  OomWatch& oom;
  Clock& clock;
};

// Deletes a pod from the store. The pod must have no processes. Logs failures; it is not an error
// if the pod no longer exists.
void DeletePod(client::Client& client, const objects::ObjectMeta& metadata);

class Supervisor {
 public:
  // `spec` must be parsed from the same pod. The first Step starts the first containers.
  Supervisor(Shared shared, PodSpec spec, const objects::Pod& pod);
  ~Supervisor();  // kills processes that are still running
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Performs the due actions and writes the status if it has changed. Logs failures.
  void Step();
  std::optional<Duration> wake_at() const;

  void Delete(Duration grace);
  // Call this when the object is gone from the store. Kills all processes immediately, and writes
  // no more statuses.
  void Abandon();
  // Call this when the process of a container, given by its index, has exited.
  void OnEnded(size_t container);
  // Returns whether no process is left and the object has been deleted from the store.
  bool finished() const { return object_gone_ && !lifecycle_.running(); }

  // Returns the pidfd of a container's process; -1 if there is none.
  int pidfd(size_t container) const { return processes_[container].pidfd.get(); }
  pid_t pid(size_t container) const { return processes_[container].pid; }
  size_t size() const { return processes_.size(); }

 private:
  Moment Now() const;
  // Returns the path of the file for the container's termination message.
  std::string TerminationLogOf(size_t container) const;
  std::string PodFolder() const;
  void CarryOut(const PodLifecycle::Action& action);
  void LaunchContainer(size_t container);
  StatusOr<LaunchPlan> Prepare(size_t container);
  Status OpenLog(size_t container, const std::string& path);
  void WriteStatus();
  void DeleteObject();

  const Shared shared_;
  const PodSpec spec_;
  PodLifecycle lifecycle_;
  std::vector<Process> processes_;
  std::optional<HostVolumes> volumes_;  // set once they are prepared
  std::optional<objects::Pod> written_;
  std::optional<Duration> retry_at_;  // when to repeat a failed write
  bool object_gone_ = false;
};

}  // namespace tfjob::process
