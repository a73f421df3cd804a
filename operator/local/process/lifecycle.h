// Models the lifecycle of one pod on this machine as a state machine without processes, threads or
// a clock. The state machine receives events, and returns actions and the pod's status.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/local/process/pod_spec.h"
#include "operator/objects/pod.h"
#include "runtime/base/backoff.h"

namespace tfjob::process {

// Represents a point in time, read from the wall clock and from the steady clock.
struct Moment {
  Time wall;
  Duration steady{0};
};

class PodLifecycle {
 public:
  struct Options {
    // The delay before each restart of a container: none before the first, `initial` before the
    // second, then twice as long each time, up to `maximum`.
    BackoffPolicy crash_backoff{10s, 300s, 2.0, 0.0};
    Duration backoff_reset{600s};  // a run of at least this long resets the backoff
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
    std::string message;  // the container's termination message
  };

  // `spec` must outlive this object.
  PodLifecycle(const PodSpec& spec, objects::Pod observed, Options options, Moment now);

  // Returns the actions to take now, each action only once. Call this after every input and at
  // wake_at(). Respond to a launch with Launched, LaunchFailed or LaunchHeld before the next call.
  std::vector<Action> Advance(Moment now);
  std::optional<Duration> wake_at() const;  // steady time

  void Launched(size_t container, Moment now);
  // Reports that the container cannot run. This counts as an exit with code 128 ("StartError").
  void LaunchFailed(size_t container, const std::string& message, Moment now);
  // Reports that the container cannot run yet, for `reason`. The container waits and is launched
  // again later. This does not count as a restart.
  void LaunchHeld(size_t container, const std::string& reason, const std::string& message,
                  Moment now);
  void Ended(size_t container, const End& end, Moment now);
  // Starts the graceful deletion. If this is called several times, the earliest deadline applies.
  // Once all containers have ended, Advance returns kDeleteObject.
  void Delete(Duration grace, Moment now);

  // Returns the pod, with its status as of the last input.
  const objects::Pod& pod() const { return pod_; }
  bool running() const;  // whether any process is alive
  // Returns the number of restarts of a container.
  int restarts(size_t container) const { return pod_.containers[container].restart_count; }

 private:
  enum class State { kWaiting, kLaunching, kRunning, kEnded };
  struct Progress {
    State state = State::kWaiting;
    std::optional<Duration> not_before;  // earliest time of the next launch
    std::optional<int> last_exit;        // exit code of the last run
    int crashes = 0;                     // exits since the last long run
    int holds = 0;                       // consecutive calls of LaunchHeld
    bool terminated = false;             // kTerminate was returned since the launch
    bool killed = false;
    Duration launched{0};
  };

  objects::ContainerStatus& status(size_t container) { return pod_.containers[container]; }
  bool WillRun(size_t container) const;  // will be launched, now or later
  bool Done(size_t container) const;     // has ended and will not be launched again
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
  std::optional<Duration> kill_at_;  // set once the pod is being deleted
  bool delete_given_ = false;
};

}  // namespace tfjob::process
