#include "operator/local/run/local_run.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/local/process/options.h"
#include "operator/local/run/local_cluster.h"
#include "operator/local/run/log_follower.h"
#include "operator/local/run/progress_poller.h"
#include "operator/local/run/run.h"
#include "operator/local/run/workload.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/custom_resource.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"
#include "operator/view/pod_key.h"
#include "operator/view/screen.h"
#include "operator/view/training_slot.h"

namespace tfjob::local {
namespace {

using PodPointer = std::shared_ptr<const objects::Pod>;

constexpr Duration kTick = 100ms;
constexpr Duration kPollInterval = 1s;
constexpr Duration kTakeDownReport = 10s;

class LocalRun {
 public:
  LocalRun(const RunOptions& options, const Workload& workload,
           const process::RunnerOptions& process, view::Console& console);

  Status Run(StopSource& stop);
  bool all_succeeded() const;

 private:
  // Describes a job as last seen. The entry remains if the job is deleted after it has ended.
  struct JobState {
    const Workload::Job* workload = nullptr;
    api::TFJob job;
    std::string training_address, evaluation_address;  // "" if unknown
    bool deleted = false;  // deleted before it had ended, but not by this run

    bool ended() const { return deleted || api::IsFinished(job.status); }
  };

  Status Start();
  void Watch(StopSource& stop);
  bool Finished() const;
  void ReportChanges();
  void RememberFailedLogs(const objects::Pod& pod);
  void ReportProgress();
  // Reports each problem of a running job once, and "problem solved" when no problem is left.
  void ReportProblems(const std::string& key, const view::JobView& view);
  void ReportLine(const std::string& name, const std::string& text);
  Status TakeDown(bool stopped);
  void ReportEnd(const JobState& state);
  // Prints the last lines of the logs of failed pods.
  void PrintFailedLogs(const JobState& state);
  std::string LastAccuracy(const JobState& state) const;
  view::JobView ViewOf(const JobState& state);
  std::string Elapsed() const;

  const RunOptions& options_;
  const Workload& workload_;
  const process::RunnerOptions& process_;
  view::Screen screen_;
  const LogSizes earlier_logs_;
  LogFollower follower_;
  view::PodReporter pods_reporter_;
  // The log paths of failed containers, by the job's namespace/name.
  std::map<std::string, std::set<std::string>> failed_logs_;
  std::map<std::string, JobState> states_;  // by namespace/name
  bool taking_down_ = false;                // the run itself deletes the jobs
  Duration started_{0}, reported_{0};
  std::map<std::string, std::string> last_progress_;               // by job: its last progress line
  std::map<std::string, std::vector<std::string>> told_problems_;  // by job

  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<view::ObjectCache> jobs_, pods_;
  std::unique_ptr<ProgressPoller> poller_;
};

LocalRun::LocalRun(const RunOptions& options, const Workload& workload,
                   const process::RunnerOptions& process, view::Console& console)
    : options_(options),
      workload_(workload),
      process_(process),
      screen_(console),
      earlier_logs_(SizesOfLogs(process_.state_dir + "/logs")),
      follower_(process_.state_dir + "/logs", earlier_logs_,
                [this](std::string_view line) { screen_.Line(line); }) {}

Status LocalRun::Run(StopSource& stop) {
  started_ = reported_ = RealClock().Monotonic();
  RETURN_IF_ERROR(Start());
  Watch(stop);
  poller_.reset();
  screen_.Live({});
  if (stop.requested())
    ReportLine("", "stopping: terminating the pods; a second signal kills them");
  const Status down = TakeDown(stop.requested());
  if (options_.follow) follower_.Poll(true);
  for (const auto& [key, state] : states_) ReportEnd(state);
  screen_.Line(StrCat("logs: ", process_.state_dir, "/logs"));
  return down;
}

Status LocalRun::Start() {
  ASSIGN_OR_RETURN(cluster_, LocalCluster::Create(workload_, process_));
  ASSIGN_OR_RETURN(jobs_, view::ObjectCache::Create(cluster_->client(), objects::Kind::kTFJob));
  ASSIGN_OR_RETURN(pods_, view::ObjectCache::Create(cluster_->client(), objects::Kind::kPod));
  std::vector<std::string> addresses;
  std::map<std::string, client::Key> pods;  // by address
  const auto address = [&](const api::TFJob& job, const std::optional<policy::Slot>& slot) {
    if (!slot) return std::string();
    addresses.push_back(cluster_->AddressOf(job, *slot));
    pods[addresses.back()] = {objects::Kind::kPod, job.metadata.name_space,
                              api::ReplicaName(job.metadata.name, slot->type, slot->index)};
    return addresses.back();
  };
  for (const Workload::Job& job : workload_.jobs) {
    JobState state{&job, job.job, "", ""};
    state.training_address = address(job.job, view::TrainingSlot(job.job));
    state.evaluation_address = address(job.job, view::EvaluationSlot(job.job));
    states_.emplace(job.job.key(), std::move(state));
  }
  RETURN_IF_ERROR(cluster_->Submit(workload_));
  const auto key_of = [this, pods](const std::string& at) -> StatusOr<std::optional<wire::JobKey>> {
    ASSIGN_OR_RETURN(const Json pod, cluster_->client().GetJson(pods.at(at)));
    return view::KeyOfPod(pod);
  };
  poller_ = std::make_unique<ProgressPoller>(std::move(addresses), key_of, kPollInterval);
  return OkStatus();
}

void LocalRun::Watch(StopSource& stop) {
  while (!stop.WaitFor(kTick)) {
    ReportChanges();
    if (options_.follow) follower_.Poll();
    ReportProgress();
    if (Finished()) return;
    if (screen_.broken()) stop.Request(SIGPIPE);
  }
  ReportChanges();
}

bool LocalRun::Finished() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const auto& entry) { return entry.second.ended(); });
}

bool LocalRun::all_succeeded() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const auto& entry) { return api::IsSucceeded(entry.second.job.status); });
}

void LocalRun::ReportChanges() {
  for (const view::ObjectCache::Change& change : pods_->TakeChanges()) {
    const objects::Pod& pod = *client::As<objects::Pod>(change.object);
    for (const std::string& line : pods_reporter_.Report(pod)) ReportLine("", line);
    RememberFailedLogs(pod);
  }
  for (const view::ObjectCache::Change& change : jobs_->TakeChanges()) {
    const auto job =
        manifest::ParseTFJob(*client::As<objects::CustomResource>(change.object)->object);
    if (!job.ok()) continue;
    const auto state = states_.find(job->key());
    if (state == states_.end()) continue;
    for (const std::string& line : view::NewConditions(state->second.job.status, job->status)) {
      ReportLine(job->metadata.name, line);
    }
    state->second.job = *job;
    state->second.deleted |= change.deleted && !taking_down_ && !api::IsFinished(job->status);
  }
}

void LocalRun::RememberFailedLogs(const objects::Pod& pod) {
  const objects::OwnerReference* owner = pod.metadata.controller();
  if (owner == nullptr || pod.metadata.terminating()) return;
  for (const objects::ContainerStatus& container : pod.containers) {
    const bool ended = container.state == objects::ContainerStatus::State::kTerminated;
    if (!ended || container.exit_code == 0) continue;
    failed_logs_[StrCat(pod.metadata.name_space, "/", owner->name)].insert(
        process::LogPath(process_, pod.metadata.name_space, pod.metadata.name, container.name));
  }
}

view::JobView LocalRun::ViewOf(const JobState& state) {
  std::vector<PodPointer> pods;
  for (const auto& [key, object] : pods_->Objects())
    pods.push_back(client::As<objects::Pod>(object));
  view::JobView view = view::MakeView(state.job, pods);
  const auto latest = poller_->Latest();
  const auto find = [&](const std::string& address) -> std::optional<progress::Progress> {
    const auto found = latest.find(address);
    if (found == latest.end()) return std::nullopt;
    return found->second;
  };
  view.training = find(state.training_address);
  view.evaluation = find(state.evaluation_address);
  return view;
}

void LocalRun::ReportProgress() {
  std::vector<std::string> live;
  const bool due = RealClock().Monotonic() - reported_ >= options_.report_interval;
  if (due) reported_ = RealClock().Monotonic();
  for (const auto& [key, state] : states_) {
    if (state.ended()) continue;
    const view::JobView view = ViewOf(state);
    ReportProblems(key, view);
    if (screen_.width() == 0 && !due) continue;
    if (screen_.width() > 0) {
      live.push_back(view::LiveLine(view, screen_.width()));
      continue;
    }
    std::string text = view::ProgressText(view);
    text = text.empty() ? view::ReplicasText(view) : text;
    if (text != std::exchange(last_progress_[key], text)) ReportLine(view.name, text);
  }
  screen_.Live(std::move(live));
}

void LocalRun::ReportProblems(const std::string& key, const view::JobView& view) {
  std::vector<std::string> problems = view::Problems(view);
  std::vector<std::string>& told = told_problems_[key];
  for (const std::string& problem : problems) {
    if (std::find(told.begin(), told.end(), problem) == told.end())
      ReportLine(view.name, StrCat("problem: ", problem));
  }
  if (problems.empty() && !told.empty()) ReportLine(view.name, "problem solved");
  told = std::move(problems);
}

std::string LocalRun::Elapsed() const {
  char text[32];
  const std::chrono::duration<double> seconds = RealClock().Monotonic() - started_;
  snprintf(text, sizeof(text), "[%7.1fs] ", seconds.count());
  return text;
}

void LocalRun::ReportLine(const std::string& name, const std::string& text) {
  screen_.Line(StrCat(Elapsed(), name, name.empty() ? "" : ": ", text));
}

// Deletes the jobs and waits until their pods have terminated gracefully, as in a cluster.
Status LocalRun::TakeDown(bool stopped) {
  taking_down_ = true;
  for (const auto& [key, state] : states_) {
    const objects::ObjectMeta& metadata = state.job.metadata;
    const Status status =
        cluster_->client().Delete({objects::Kind::kTFJob, metadata.name_space, metadata.name}, {});
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  for (Duration waited{0}; !pods_->AwaitEmpty(kTakeDownReport);) {
    waited += kTakeDownReport;
    std::vector<std::string> names;
    for (const auto& [key, object] : pods_->Objects()) names.push_back(key.name);
    ReportLine("", StrCat("waiting for ", absl::StrJoin(names, ", "), " to end, ",
                          FormatDuration(waited), " so far"));
  }
  if (stopped) ReportChanges();
  return OkStatus();
}

void LocalRun::ReportEnd(const JobState& state) {
  const api::TFJob& job = state.job;
  std::string end = state.deleted ? "deleted before it had ended" : "stopped";
  for (const api::Condition& condition : job.status.conditions) {
    const bool final = condition.type == api::ConditionType::kSucceeded ||
                       condition.type == api::ConditionType::kFailed;
    if (final && condition.status) end = api::Name(condition.type);
  }
  const std::string accuracy = LastAccuracy(state);
  ReportLine(job.metadata.name, end);
  if (api::IsFailed(job.status) && !options_.follow) PrintFailedLogs(state);
  if (!state.workload->model_dir.empty()) {
    screen_.Line(
        StrCat(job.metadata.name, ": checkpoints and events: ", state.workload->model_dir));
  }
  if (!accuracy.empty()) screen_.Line(StrCat(job.metadata.name, ": test accuracy ", accuracy));
}

void LocalRun::PrintFailedLogs(const JobState& state) {
  constexpr size_t kLogs = 3, kLines = 10;
  size_t shown = 0;
  for (const std::string& path : failed_logs_[state.job.key()]) {
    if (shown++ == kLogs) return;
    screen_.Line(StrCat("last lines of ", path, ":"));
    for (const std::string& line : LastLines(ReadLog(path, earlier_logs_), kLines)) {
      screen_.Line(StrCat("  ", line));
    }
  }
}

std::string LocalRun::LastAccuracy(const JobState& state) const {
  const api::TFJob& job = state.workload->job;
  const auto evaluation = view::EvaluationSlot(job);
  const auto slot = evaluation ? evaluation : view::TrainingSlot(job);
  if (!slot) return "";
  const std::string pod = api::ReplicaName(job.metadata.name, slot->type, slot->index);
  const std::string path =
      process::LogPath(process_, job.metadata.name_space, pod, api::kContainerName);
  return LastMetric(ReadLog(path, earlier_logs_), "accuracy", evaluation ? "" : "eval");
}

}  // namespace

StatusOr<bool> RunWorkload(const RunOptions& options, const Workload& workload,
                           const process::RunnerOptions& process, StopSource& stop,
                           view::Console& console) {
  LocalRun run(options, workload, process, console);
  RETURN_IF_ERROR(run.Run(stop));
  return run.all_succeeded();
}

}  // namespace tfjob::local
