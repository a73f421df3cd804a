#include "operator/local/process/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/local/process/log.h"
#include "operator/local/process/mount_plan.h"
#include "operator/local/process/termination_log.h"
#include "operator/local/process/volumes.h"
#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

constexpr Duration kWriteRetry = 1s;

// Returns whether the cause of the error may disappear: a missing ConfigMap may still be created.
// All other errors are permanent.
bool MayHeal(const Status& status) {
  return absl::IsNotFound(status) && Message(status).find("ConfigMap") != std::string_view::npos;
}

ConfigMapReader ReaderOf(client::Client& client, const std::string& name_space) {
  return [&client, name_space](const std::string& name) -> StatusOr<std::shared_ptr<const Json>> {
    auto object = client.GetJson({objects::Kind::kConfigMap, name_space, name});
    if (absl::IsNotFound(object.status())) return NotFound("there is no ConfigMap \"", name, "\"");
    RETURN_IF_ERROR(object.status());
    return std::make_shared<const Json>(*std::move(object));
  };
}

}  // namespace

void DeletePod(client::Client& client, const objects::ObjectMeta& metadata) {
  const client::Key key{objects::Kind::kPod, metadata.name_space, metadata.name};
  const Status status = client.Delete(key, {metadata.uid, 0});
  if (status.ok() || absl::IsNotFound(status) || absl::IsAborted(status)) return;
  kLog.Warning("deleting a pod that has ended failed", {{"pod", metadata.name}, {"error", status}});
}

Supervisor::Supervisor(Shared shared, PodSpec spec, const objects::Pod& pod)
    : shared_(shared),
      spec_(std::move(spec)),
      lifecycle_(spec_, pod, shared.options.lifecycle, Now()),
      processes_(spec_.containers.size()) {}

Supervisor::~Supervisor() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i].pidfd.valid()) continue;
    SignalGroup(processes_[i], SIGKILL);
    OnEnded(i);
  }
  std::error_code ignored;
  if (!shared_.options.keep_volumes) std::filesystem::remove_all(PodFolder(), ignored);
}

Moment Supervisor::Now() const {
  return {shared_.clock.Now(), shared_.clock.Monotonic()};
}

std::string Supervisor::TerminationLogOf(size_t container) const {
  return StrCat(PodFolder(), "/termination-logs/", spec_.containers[container].name);
}

std::string Supervisor::PodFolder() const {
  return StrCat(shared_.options.state_dir, "/pods/", spec_.metadata.uid);
}

void Supervisor::Step() {
  retry_at_.reset();
  WriteStatus();  // shows that a container has exited even if it restarts immediately
  for (auto actions = lifecycle_.Advance(Now()); !actions.empty() && !object_gone_;
       actions = lifecycle_.Advance(Now())) {
    for (const PodLifecycle::Action& action : actions) CarryOut(action);
  }
  WriteStatus();
}

std::optional<Duration> Supervisor::wake_at() const {
  const auto wake = lifecycle_.wake_at();
  if (!wake || !retry_at_) return wake ? wake : retry_at_;
  return std::min(*wake, *retry_at_);
}

void Supervisor::CarryOut(const PodLifecycle::Action& action) {
  switch (action.kind) {
    case PodLifecycle::Action::Kind::kLaunch:
      return LaunchContainer(action.container);
    case PodLifecycle::Action::Kind::kTerminate:
      return SignalGroup(processes_[action.container], SIGTERM);
    case PodLifecycle::Action::Kind::kKill:
      return SignalGroup(processes_[action.container], SIGKILL);
    case PodLifecycle::Action::Kind::kDeleteObject:
      return DeleteObject();
  }
}

void Supervisor::LaunchContainer(size_t container) {
  const Container& spec = spec_.containers[container];
  if (const Status runnable = CheckCommand(spec, shared_.options.images); !runnable.ok()) {
    return lifecycle_.LaunchHeld(container, "ErrImageNotLocal", std::string(Message(runnable)),
                                 Now());
  }
  const auto plan = Prepare(container);
  if (!plan.ok()) {
    const std::string message(Message(plan.status()));
    if (MayHeal(plan.status())) {
      return lifecycle_.LaunchHeld(container, "CreateContainerConfigError", message, Now());
    }
    return lifecycle_.LaunchFailed(container, message, Now());
  }
  auto process = Launch(*plan);
  if (!process.ok())
    return lifecycle_.LaunchFailed(container, std::string(Message(process.status())), Now());
  processes_[container] = *std::move(process);
  shared_.guardian.Protect(processes_[container].pid);
  lifecycle_.Launched(container, Now());
  kLog.Debug("container started", {{"pod", spec_.metadata.name},
                                   {"container", spec.name},
                                   {"pid", processes_[container].pid},
                                   {"restarts", lifecycle_.restarts(container)}});
}

StatusOr<LaunchPlan> Supervisor::Prepare(size_t container) {
  const Container& spec = spec_.containers[container];
  const RunnerOptions& options = shared_.options;
  const ConfigMapReader config_maps = ReaderOf(shared_.client, spec_.metadata.name_space);
  RETURN_IF_ERROR(MakeDirectories(PodFolder()));
  if (!volumes_) {
    const auto claims = [&](const std::string& claim) {
      return FindClaim(options, spec_.metadata.name_space, claim);
    };
    ASSIGN_OR_RETURN(volumes_, PrepareVolumes(spec_, PodFolder(), claims, config_maps));
  }
  RETURN_IF_ERROR(CreateTerminationLog(TerminationLogOf(container)));
  Variables base = options.environment;
  base[kTerminationLogVariable] = TerminationLogOf(container);
  if (options.pod_environment) base.merge(options.pod_environment(spec_.metadata));
  ASSIGN_OR_RETURN(const Variables variables,
                   ResolveEnvironment(spec_, spec, options.lifecycle.ip, config_maps, base));
  LaunchPlan plan;
  ASSIGN_OR_RETURN(CommandLine line, ResolveCommand(spec, options.images, variables));
  plan.programs = std::move(line.programs);
  plan.arguments = std::move(line.arguments);
  for (const auto& [name, value] : variables) plan.environment.push_back(StrCat(name, "=", value));
  plan.working_dir = spec.working_dir.empty() ? options.working_dir : spec.working_dir;
  ASSIGN_OR_RETURN(plan.mounts, PlanMounts(spec, *volumes_, variables, PodFolder() + "/root"));
  plan.log_path = LogPath(options, spec_.metadata.name_space, spec_.metadata.name, spec.name);
  RETURN_IF_ERROR(OpenLog(container, plan.log_path));
  return plan;
}

// Creates the log if it does not exist. If it exists and is not empty, appends a line that marks
// the next start.
Status Supervisor::OpenLog(size_t container, const std::string& path) {
  RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  const FileDescriptor log(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct stat info{};
  if (!log.valid() || fstat(log.get(), &info) != 0)
    return ErrnoStatus(errno, StrCat("open ", path));
  if (info.st_size == 0) return OkStatus();
  const objects::ContainerStatus& status = lifecycle_.pod().containers[container];
  const bool again = status.finished_at != Time();
  const std::string line = StrCat(
      "--- ", FormatTime(shared_.clock.Now()), " ", spec_.containers[container].name, " of ",
      spec_.metadata.name, ": ",
      again ? StrCat("restart ", status.restart_count + 1) : std::string("new pod"), " ---\n");
  if (write(log.get(), line.data(), line.size()) < 0)
    return ErrnoStatus(errno, StrCat("write ", path));
  return OkStatus();
}

void Supervisor::OnEnded(size_t container) {
  const auto exit = Collect(processes_[container]);
  shared_.guardian.Release(processes_[container].pid);
  processes_[container] = Process();
  PodLifecycle::End end{exit.ok() ? exit->exit_code : 255, exit.ok() ? exit->signal : 0, false,
                        ReadTerminationLog(TerminationLogOf(container))};
  end.out_of_memory = end.signal == SIGKILL && shared_.oom.Claim();
  lifecycle_.Ended(container, end, Now());
}

void Supervisor::Delete(Duration grace) {
  lifecycle_.Delete(grace, Now());
}

void Supervisor::Abandon() {
  if (std::exchange(object_gone_, true)) return;
  for (const Process& process : processes_) {
    if (process.pidfd.valid()) SignalGroup(process, SIGKILL);
  }
}

void Supervisor::WriteStatus() {
  if (object_gone_ || written_ == lifecycle_.pod()) return;
  Json object = objects::StatusToJson(lifecycle_.pod());
  object["apiVersion"] = "v1";
  object["kind"] = "Pod";
  object["metadata"] = {{"name", spec_.metadata.name},
                        {"namespace", spec_.metadata.name_space},
                        {"uid", spec_.metadata.uid}};
  const auto stored = shared_.client.UpdateStatus(objects::Kind::kPod, object);
  if (stored.ok()) {
    written_ = lifecycle_.pod();
  } else if (!absl::IsNotFound(stored.status()) && !absl::IsAborted(stored.status())) {
    kLog.Warning("writing a pod's status failed",
                 {{"pod", spec_.metadata.name}, {"error", stored.status()}});
    retry_at_ = shared_.clock.Monotonic() + kWriteRetry;
  }  // otherwise the pod is gone or another has its name, which the watch will report
}

void Supervisor::DeleteObject() {
  WriteStatus();
  DeletePod(shared_.client, spec_.metadata);
  object_gone_ = true;
}

}  // namespace tfjob::process
