#include "tests/processes/job_run.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/base/check.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/progress/client.h"

extern char** environ;

namespace tfjob::processes {
namespace {

constexpr Duration kPoll = 20ms;

// The value of a variable in the environment of a process, or "".
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

// The parent of a process, 0 when it is gone. Field 4 of /proc/<pid>/stat; the name in field 2 may hold spaces.
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

// The task that a process plays; pid 0 for any other process.
TaskProcess TaskOf(pid_t pid) {
  const std::string proc = StrCat("/proc/", pid);
  std::error_code error;
  if (std::filesystem::read_symlink(proc + "/exe", error).filename() != "tfjob-trainer") return {};
  StatusOr<cluster::TfConfig> config = cluster::ParseTfConfig(EnvironmentOf(proc, "TF_CONFIG"));
  if (!config.ok() || IsZombie(pid)) return {};
  return {pid, config->task, config->cluster.address(config->task)};
}

}  // namespace

std::unique_ptr<JobRun> JobRun::Start(const std::string& manifest, const std::string& folder) {
  ENFORCE(MakeDirectories(folder).ok(), folder);
  const std::string file = folder + "/job.yaml", output = folder + "/output";
  ENFORCE(WriteFileAtomically(file, manifest).ok(), file);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const std::string program = Runfile("operator/cmd/tfjob");
  const std::string trainer = StrCat("--trainer=", Runfile("runtime/cmd/tfjob-trainer"));
  const std::string state = StrCat("--state-dir=", folder, "/state");
  const char* arguments[] = {"tfjob",       "run",    file.c_str(), trainer.c_str(),
                             state.c_str(), "--keep", nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  ENFORCE(error == 0, program);
  return std::unique_ptr<JobRun>(new JobRun(pid, output));
}

JobRun::~JobRun() {
  if (Ended()) return;
  Signal(SIGTERM);
  if (AwaitEnd(60s) < 0) {
    Signal(SIGKILL);
    AwaitEnd(60s);
  }
}

std::vector<TaskProcess> JobRun::Tasks() const {
  std::vector<TaskProcess> tasks;
  StatusOr<std::vector<std::string>> names = ListDirectory("/proc");
  for (const std::string& name : names.value()) {
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0) continue;
    TaskProcess task = TaskOf(pid);
    if (task.pid != 0 && DescendsFrom(pid, pid_)) tasks.push_back(std::move(task));
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
    StatusOr<progress::Progress> progress = progress::ProgressClient(process.address).Fetch(1s);
    if (progress.ok()) step = std::max(step, progress->step);
  }
  return step;
}

int64_t JobRun::StepOf(const cluster::Task& task) const {
  for (const TaskProcess& process : Tasks()) {
    if (process.task != task) continue;
    StatusOr<progress::Progress> progress = progress::ProgressClient(process.address).Fetch(1s);
    return progress.ok() ? progress->step : -1;
  }
  return -1;
}

bool JobRun::AwaitStep(int64_t step, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended() && std::chrono::steady_clock::now() < deadline) {
    if (Step() >= step) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

pid_t JobRun::Kill(const cluster::Task& task) {
  for (const TaskProcess& process : Tasks()) {
    if (process.task != task) continue;
    kill(process.pid, SIGKILL);
    return process.pid;
  }
  return 0;
}

bool JobRun::Ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

int JobRun::AwaitEnd(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended()) {
    if (std::chrono::steady_clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(kPoll);
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void JobRun::Signal(int number) const {
  kill(pid_, number);
}

std::string JobRun::Output() const {
  return ReadFile(output_).value_or("");
}

double LastAccuracy(const std::string& text) {
  const size_t place = text.rfind("accuracy");
  if (place == std::string::npos) return -1;
  const size_t digits = text.find_first_of("0123456789", place);
  return digits == std::string::npos ? -1 : std::atof(text.c_str() + digits);
}

std::string Runfile(const std::string& path) {
  const std::string sources = GetEnv("TEST_SRCDIR").value_or(".");
  return StrCat(sources, "/", GetEnv("TEST_WORKSPACE").value_or("tfjob"), "/", path);
}

}  // namespace tfjob::processes
