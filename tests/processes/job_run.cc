#include "tests/processes/job_run.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_replace.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/progress/client.h"

namespace tfjob::processes {
namespace {

constexpr Duration kPoll = 20ms;

// Returns the value of a variable in the environment of a process, or "" if the variable is not
// set.
std::string EnvironmentOf(const std::string& proc, std::string_view name) {
  StatusOr<std::string> block = ReadFile(proc + "/environ");
  if (!block.ok()) return "";
  std::string_view left = *block;
  while (!left.empty()) {
    const size_t end = std::min(left.find('\0'), left.size());
    const std::string_view entry = left.substr(0, end);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return "";
}

// Returns the parent of a process, or 0 if the process has exited. The parent is field 4 of
// /proc/<pid>/stat. Starts the search at the end of field 2, the name, because the name may contain
// spaces.
pid_t ParentOf(pid_t pid) {
  StatusOr<std::string> stat = ReadFile(StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return 0;
  const size_t name_end = stat->rfind(')');
  return name_end == std::string::npos ? 0 : std::atoi(stat->c_str() + name_end + 4);
}

bool IsZombie(pid_t pid) {
  StatusOr<std::string> stat = ReadFile(StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return true;
  const size_t name_end = stat->rfind(')');
  return name_end == std::string::npos || stat->compare(name_end + 2, 1, "Z") == 0;
}

bool DescendsFrom(pid_t pid, pid_t ancestor) {
  for (int depth = 0; pid > 1 && depth < 16; ++depth) {
    if (pid == ancestor) return true;
    pid = ParentOf(pid);
  }
  return false;
}

// Returns the task that the process runs. The pid of the result is 0 if the process is not a
// running trainer.
TaskProcess TaskOf(pid_t pid) {
  const std::string proc = StrCat("/proc/", pid);
  std::error_code error;
  if (std::filesystem::read_symlink(proc + "/exe", error).filename() != "tfjob-trainer") return {};
  StatusOr<cluster::TfConfig> config = cluster::ParseTfConfig(EnvironmentOf(proc, "TF_CONFIG"));
  if (!config.ok() || IsZombie(pid)) return {};
  return {pid, config->task, config->cluster.address(config->task)};
}

// Writes a program that stores the trainer's key in `key_file`, where this test can read the key,
// and then executes the trainer. The trainer itself removes the key from its environment.
void WriteKeyKeeper(const std::string& path, const std::string& key_file) {
  const std::string text = StrCat(
      "#!/bin/sh\nprintf %s \"$TFJOB_KEY\" > '", key_file, "'\nexec '",
      std::filesystem::absolute(Runfile("runtime/cmd/tfjob-trainer")).string(), "' \"$@\"\n");
  ENFORCE(WriteFileAtomically(path, text).ok(), path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace

std::unique_ptr<JobRun> JobRun::Start(const std::string& manifest, const std::string& folder) {
  ENFORCE(MakeDirectories(folder).ok(), folder);
  const std::string file = folder + "/job.yaml";
  ENFORCE(WriteFileAtomically(file, manifest).ok(), file);
  WriteKeyKeeper(folder + "/trainer", folder + "/key");
  const std::vector<std::string> arguments = {"run", file, StrCat("--trainer=", folder, "/trainer"),
                                              StrCat("--state-dir=", folder, "/state"), "--keep"};
  return std::unique_ptr<JobRun>(
      new JobRun(Runfile("operator/cli/tfjob"), arguments, folder + "/output", folder + "/key"));
}

StatusOr<progress::Progress> JobRun::Ask(const TaskProcess& process) const {
  const auto key = wire::JobKey::Parse(ReadFile(key_file_).value_or(""));
  return progress::ProgressClient(process.address, key.ok() ? std::optional(*key) : std::nullopt)
      .Fetch(1s);
}

std::vector<TaskProcess> JobRun::Tasks() const {
  std::vector<TaskProcess> tasks;
  StatusOr<std::vector<std::string>> names = ListDirectory("/proc");
  for (const std::string& name : names.value()) {
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0) continue;
    TaskProcess task = TaskOf(pid);
    if (task.pid != 0 && DescendsFrom(pid, program_.pid())) tasks.push_back(std::move(task));
  }
  return tasks;
}

TaskProcess JobRun::Await(const cluster::Task& task, Duration timeout, pid_t other_than) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    for (TaskProcess& process : Tasks()) {
      if (process.task == task && process.pid != other_than) return process;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return {};
}

int64_t JobRun::Step() const {
  int64_t step = -1;
  for (const TaskProcess& process : Tasks()) {
    if (process.task.type == "evaluator") continue;
    StatusOr<progress::Progress> progress = Ask(process);
    if (progress.ok()) step = std::max(step, progress->step);
  }
  return step;
}

std::optional<progress::Progress> JobRun::ProgressOf(const cluster::Task& task) const {
  for (const TaskProcess& process : Tasks()) {
    if (process.task != task) continue;
    StatusOr<progress::Progress> progress = Ask(process);
    if (progress.ok()) return *std::move(progress);
  }
  return std::nullopt;
}

int64_t JobRun::StepOf(const cluster::Task& task) const {
  const std::optional<progress::Progress> progress = ProgressOf(task);
  return progress ? progress->step : -1;
}

bool JobRun::AwaitStep(int64_t step, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended() && std::chrono::steady_clock::now() < deadline) {
    if (Step() >= step) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

bool JobRun::AwaitPart(double part, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended() && std::chrono::steady_clock::now() < deadline) {
    const std::optional<progress::Progress> chief = ProgressOf({"chief", 0});
    if (chief && chief->max_steps > 0 &&
        static_cast<double>(chief->step) >= part * static_cast<double>(chief->max_steps)) {
      return true;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

pid_t JobRun::SignalTask(const cluster::Task& task, int number) const {
  for (const TaskProcess& process : Tasks()) {
    if (process.task != task) continue;
    kill(process.pid, number);
    return process.pid;
  }
  return 0;
}

std::string WithModelFolder(const std::string& manifest, const std::string& example,
                            const std::string& folder) {
  ENFORCE(MakeDirectories(folder).ok(), folder);
  const std::string claim = StrCat("  name: ", example, "-model\n");
  std::string changed = manifest;
  const std::string annotation = StrCat("  annotations: {tfjob.dev/local-path: ", folder, "}\n");
  ENFORCE(absl::StrReplaceAll({{claim, claim + annotation}}, &changed) == 1, manifest);
  return changed;
}

double LastAccuracy(const std::string& text) {
  const size_t place = text.rfind("accuracy");
  if (place == std::string::npos) return -1;
  const size_t digits = text.find_first_of("0123456789", place);
  return digits == std::string::npos ? -1 : std::atof(text.c_str() + digits);
}

}  // namespace tfjob::processes
