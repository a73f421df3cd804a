#include "operator/local/process/lifecycle.h"

#include <algorithm>
#include <utility>

namespace tfjob::process {
namespace {

using ContainerState = objects::ContainerStatus::State;
using objects::PodPhase;

constexpr int kStartErrorCode = 128;  // containerd's code for a process that could not be started

void SetCondition(objects::Pod& pod, const std::string& type, bool value, const std::string& reason,
                  Time now) {
  const std::string status = value ? "True" : "False";
  auto found =
      std::find_if(pod.conditions.begin(), pod.conditions.end(),
                   [&](const objects::PodCondition& condition) { return condition.type == type; });
  if (found == pod.conditions.end()) {
    pod.conditions.push_back({type, "", "", "", Time()});
    found = std::prev(pod.conditions.end());
  }
  if (found->status != status) found->last_transition_time = TruncateToSeconds(now);
  found->status = status;
  found->reason = value ? "" : reason;
}

}  // namespace

PodLifecycle::PodLifecycle(const PodSpec& spec, objects::Pod observed, Options options, Moment now)
    : spec_(spec),
      options_(std::move(options)),
      pod_(std::move(observed)),
      progress_(spec.containers.size()) {
  pod_.pod_ip = pod_.host_ip = options_.ip;
  pod_.start_time = TruncateToSeconds(now.wall);
  pod_.containers.clear();
  for (const Container& container : spec.containers) {
    objects::ContainerStatus status;
    status.name = container.name;
    status.init = container.init;
    status.reason = "PodInitializing";
    pod_.containers.push_back(std::move(status));
  }
  UpdateStatus(now);
}

bool PodLifecycle::WillRun(size_t container) const {
  const Progress& progress = progress_[container];
  if (kill_at_ || progress.state == State::kRunning || progress.state == State::kLaunching)
    return false;
  if (!progress.last_exit) return true;
  if (spec_.restart_policy == PodRestartPolicy::kNever) return false;
  if (*progress.last_exit != 0) return true;
  return spec_.restart_policy == PodRestartPolicy::kAlways && !spec_.containers[container].init;
}

bool PodLifecycle::Done(size_t container) const {
  return progress_[container].state == State::kEnded && !WillRun(container);
}

bool PodLifecycle::running() const {
  return std::any_of(progress_.begin(), progress_.end(),
                     [](const Progress& progress) { return progress.state == State::kRunning; });
}

std::vector<PodLifecycle::Action> PodLifecycle::Advance(Moment now) {
  std::vector<Action> actions;
  if (kill_at_) {
    PlanDeletion(now, actions);
  } else {
    PlanLaunches(now, actions);
  }
  return actions;
}

void PodLifecycle::LaunchIfDue(size_t container, Moment now, std::vector<Action>& actions) {
  Progress& progress = progress_[container];
  if (!WillRun(container) || (progress.not_before && *progress.not_before > now.steady)) return;
  progress.state = State::kLaunching;
  progress.not_before.reset();
  actions.push_back({Action::Kind::kLaunch, container});
}

void PodLifecycle::PlanLaunches(Moment now, std::vector<Action>& actions) {
  size_t container = 0;
  for (; container < progress_.size() && spec_.containers[container].init; ++container) {
    if (Done(container) && progress_[container].last_exit == 0) continue;
    LaunchIfDue(container, now, actions);
    return;  // init containers run one at a time
  }
  for (; container < progress_.size(); ++container) LaunchIfDue(container, now, actions);
}

void PodLifecycle::PlanDeletion(Moment now, std::vector<Action>& actions) {
  for (size_t i = 0; i < progress_.size(); ++i) {
    Progress& progress = progress_[i];
    if (progress.state != State::kRunning) continue;
    if (now.steady >= *kill_at_) {
      if (!std::exchange(progress.killed, true)) actions.push_back({Action::Kind::kKill, i});
    } else if (!std::exchange(progress.terminated, true)) {
      actions.push_back({Action::Kind::kTerminate, i});
    }
  }
  if (!running() && !std::exchange(delete_given_, true))
    actions.push_back({Action::Kind::kDeleteObject, 0});
}

std::optional<Duration> PodLifecycle::wake_at() const {
  std::optional<Duration> wake;
  const auto consider = [&wake](Duration at) { wake = wake ? std::min(*wake, at) : at; };
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Progress& progress = progress_[i];
    if (kill_at_ && progress.state == State::kRunning && !progress.killed) consider(*kill_at_);
    if (progress.not_before && WillRun(i)) consider(*progress.not_before);
  }
  return wake;
}

void PodLifecycle::Launched(size_t container, Moment now) {
  Progress& progress = progress_[container];
  objects::ContainerStatus& status = this->status(container);
  if (progress.last_exit) ++status.restart_count;
  progress.state = State::kRunning;
  progress.holds = 0;
  progress.terminated = progress.killed = false;
  progress.launched = now.steady;
  status.state = ContainerState::kRunning;
  status.reason.clear();
  status.message.clear();
  status.started_at = TruncateToSeconds(now.wall);
  UpdateStatus(now);
}

void PodLifecycle::LaunchFailed(size_t container, const std::string& message, Moment now) {
  Launched(container, now);
  status(container).reason = "StartError";
  status(container).message = message;
  status(container).signal = 0;
  RecordEnd(container, kStartErrorCode, now);
}

void PodLifecycle::LaunchHeld(size_t container, const std::string& reason,
                              const std::string& message, Moment now) {
  Progress& progress = progress_[container];
  progress.state = progress.last_exit ? State::kEnded : State::kWaiting;
  const Duration delay = BackoffDelay(options_.crash_backoff, ++progress.holds);
  progress.not_before = now.steady + delay;
  status(container).state = ContainerState::kWaiting;
  status(container).reason = reason;
  status(container).message = message;
  UpdateStatus(now);
}

void PodLifecycle::Ended(size_t container, const End& end, Moment now) {
  objects::ContainerStatus& status = this->status(container);
  status.reason = end.out_of_memory ? "OOMKilled" : end.exit_code == 0 ? "Completed" : "Error";
  status.message = end.message;
  status.signal = end.signal;
  RecordEnd(container, end.exit_code, now);
}

void PodLifecycle::RecordEnd(size_t container, int exit_code, Moment now) {
  Progress& progress = progress_[container];
  objects::ContainerStatus& status = this->status(container);
  progress.state = State::kEnded;
  progress.last_exit = exit_code;
  if (now.steady - progress.launched >= options_.backoff_reset) progress.crashes = 0;
  status.state = ContainerState::kTerminated;
  status.exit_code = exit_code;
  status.finished_at = TruncateToSeconds(now.wall);
  // The first restart is immediate, as with a kubelet.
  const Duration delay = BackoffDelay(options_.crash_backoff, progress.crashes++);
  if (WillRun(container) && delay > Duration::zero()) {
    progress.not_before = now.steady + delay;
    const std::string why =
        status.message.empty() ? StrCat("exit code ", exit_code) : status.message;
    status.state = ContainerState::kWaiting;
    status.reason = "CrashLoopBackOff";
    status.message =
        StrCat("back-off ", FormatDuration(delay), " restarting failed container=", status.name,
               " pod=", pod_.metadata.name, ": ", why);
  }
  UpdateStatus(now);
}

void PodLifecycle::Delete(Duration grace, Moment now) {
  const Duration at = now.steady + std::max(grace, Duration::zero());
  kill_at_ = kill_at_ ? std::min(*kill_at_, at) : at;
  UpdateStatus(now);
}

PodPhase PodLifecycle::Phase() const {
  bool failed = false, living = false;
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Progress& progress = progress_[i];
    const bool init = spec_.containers[i].init;
    const bool succeeded = progress.state == State::kEnded && progress.last_exit == 0;
    if (init && succeeded) continue;
    if (init) return Done(i) ? PodPhase::kFailed : PodPhase::kPending;
    if (!progress.last_exit && progress.state != State::kRunning) return PodPhase::kPending;
    living = living || !Done(i);
    failed = failed || progress.last_exit.value_or(0) != 0;
  }
  if (living) return PodPhase::kRunning;
  return failed ? PodPhase::kFailed : PodPhase::kSucceeded;
}

void PodLifecycle::UpdateStatus(Moment now) {
  bool initialized = true, ready = true;
  std::string unready = "ContainersNotReady";
  for (size_t i = 0; i < progress_.size(); ++i) {
    const bool running = progress_[i].state == State::kRunning;
    const bool completed = progress_[i].state == State::kEnded && progress_[i].last_exit == 0;
    status(i).ready = spec_.containers[i].init ? completed : running;
    (spec_.containers[i].init ? initialized : ready) &= status(i).ready;
  }
  pod_.phase = Phase();
  if (pod_.phase == PodPhase::kSucceeded) unready = "PodCompleted";
  SetCondition(pod_, "Initialized", initialized, "ContainersNotInitialized", now.wall);
  SetCondition(pod_, "Ready", initialized && ready, unready, now.wall);
  SetCondition(pod_, "ContainersReady", initialized && ready, unready, now.wall);
  SetCondition(pod_, "PodScheduled", true, "", now.wall);
}

}  // namespace tfjob::process
