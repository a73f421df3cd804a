// The life of one pod on this machine as a state machine without processes, threads or clock:
// events go in; actions and the pod's status come out.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/local/process/pod_spec.h"
#include "operator/objects/pod.h"
#include "runtime/base/backoff.h"

namespace tfjob::process {

// One moment on both clocks.
struct Moment {
  Time wall;
  Duration steady{0};
};

class PodLifecycle {
 public:
  struct Options {
    // Delay before restart 1 of a container: none; 2: initial; 3: twice as much; …
    BackoffPolicy crash_backoff{10s, 300s, 2.0, 0.0};
    Duration backoff_reset{600s};  // a container that ran for this long starts over
    std::string ip = "127.0.0.1";
  };
  struct Action {
    enum class Kind { kLaunch, kTerminate, kKill, kDeleteObject };
    Kind kind = Kind::kLaunch;
    size_t container = 0;  // index into PodSpec::containers

    bool operator==(const Action&) const = default;
  };
  struct End {
    int exit_code = 0;
    int signal = 0;
    bool out_of_memory = false;
  };

  // `spec` must outlive it.
  PodLifecycle(const PodSpec& spec, objects::Pod observed, Options options, Moment now);

  // Returns the actions to take now, each of them once. Call it after every input and at wake_at().
  // Answer a launch with Launched, LaunchFailed or LaunchHeld before the next call.
  std::vector<Action> Advance(Moment now);
  std::optional<Duration> wake_at() const;  // steady time

  void Launched(size_t container, Moment now);
  // The container cannot run: counts as an exit with code 128 ("StartError").
  void LaunchFailed(size_t container, const std::string& message, Moment now);
  // The container cannot run yet, for `reason`: it waits and is retried, without counting as
  // a restart.
  void LaunchHeld(size_t container, const std::string& reason, const std::string& message,
                  Moment now);
  void Ended(size_t container, const End& end, Moment now);
  // Starts graceful deletion; the shortest requested grace period counts. Once all containers have
  // ended, the object is to be deleted.
  void Delete(Duration grace, Moment now);

  // With the status as of the last input.
  const objects::Pod& pod() const { return pod_; }
  bool running() const;  // true if any process is alive
  // The number of restarts of a container.
  int restarts(size_t container) const { return pod_.containers[container].restart_count; }

 private:
  enum class State { kWaiting, kLaunching, kRunning, kEnded };
  struct Progress {
    State state = State::kWaiting;
    std::optional<Duration> not_before;  // earliest time of the next launch
    std::optional<int> last_exit;        // exit code of its last run
    int crashes = 0;                     // exits since the last long run
    int holds = 0;                       // launches held since the last that was not
    bool terminated = false;             // the signals requested since the launch
    bool killed = false;
    Duration launched{0};
  };

  objects::ContainerStatus& status(size_t container) { return pod_.containers[container]; }
  bool WillRun(size_t container) const;  // is to be launched, sooner or later
  bool Done(size_t container) const;     // ended and never to be launched again
  void LaunchIfDue(size_t container, Moment now, std::vector<Action>& actions);
  void PlanLaunches(Moment now, std::vector<Action>& actions);
  void PlanDeletion(Moment now, std::vector<Action>& actions);
  void RecordEnd(size_t container, int exit_code, Moment now);
  void UpdateStatus(Moment now);
  objects::PodPhase Phase() const;

  const PodSpec& spec_;
  const Options options_;
  objects::Pod pod_;
  std::vector<Progress> progress_;
  std::optional<Duration> kill_at_;  // set: the pod is being deleted
  bool delete_given_ = false;
};

}  // namespace tfjob::process
