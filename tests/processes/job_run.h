// Runs a job with `tfjob run`, as real processes on this machine, for tests that observe the tasks
// of the job and kill some of them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/cluster/cluster.h"
#include "runtime/progress/progress.h"
#include "tests/processes/program.h"

namespace tfjob::processes {

// A running process of the job.
struct TaskProcess {
  pid_t pid = 0;
  cluster::Task task;
  std::string address;
};

// A running job. Used by one thread only. The destructor stops the job, and waits until it has
// ended.
class JobRun {
 public:
  // `manifest` is the text of a manifest. The manifest, the state and the output are written to
  // `folder`.
  static std::unique_ptr<JobRun> Start(const std::string& manifest, const std::string& folder);

  // Returns the running processes of the job's tasks.
  std::vector<TaskProcess> Tasks() const;
  // Waits until the task has a process with a pid other than `other_than`, such as that of its
  // previous process. The pid of the result is 0 if the time expires first.
  TaskProcess Await(const cluster::Task& task, Duration timeout, pid_t other_than = 0) const;
  // Returns the largest global step that any task except an evaluator reports, or -1 if no task
  // responds.
  int64_t Step() const;
  // Returns the progress that a task reports, or nullopt if the task does not respond.
  std::optional<progress::Progress> ProgressOf(const cluster::Task& task) const;
  // Returns the global step that a task reports, or -1 if the task does not respond.
  int64_t StepOf(const cluster::Task& task) const;
  // Waits until a task reports `step` or a later step. Returns false if the job ends or the time
  // expires first.
  bool AwaitStep(int64_t step, Duration timeout);
  // Waits until the chief has completed the fraction `part` of its steps. Returns false if the job
  // ends or the time expires first.
  bool AwaitPart(double part, Duration timeout);
  // Sends a signal to a task's process. Returns the pid of the process, or 0 if there is none.
  pid_t SignalTask(const cluster::Task& task, int number) const;

  // These functions apply to the process of `tfjob run`; see Program.
  bool Ended() { return program_.Ended(); }
  int AwaitEnd(Duration timeout) { return program_.AwaitEnd(timeout); }
  void Signal(int number) const { program_.Signal(number); }
  pid_t pid() const { return program_.pid(); }
  std::string Output() const { return program_.Output(); }

 private:
  JobRun(const std::string& path, const std::vector<std::string>& arguments,
         const std::string& output, std::string key_file)
      : key_file_(std::move(key_file)), program_(path, arguments, {}, output) {}
  StatusOr<progress::Progress> Ask(const TaskProcess& process) const;

  const std::string key_file_;  // contains the job's key once a task has started
  Program program_;
};

// Returns the manifest of an example, with `folder` instead of the claim for the model. Creates
// `folder`.
std::string WithModelFolder(const std::string& manifest, const std::string& example,
                            const std::string& folder);

// Returns the first number after the last "accuracy" in the text, or -1 if there is none.
double LastAccuracy(const std::string& text);

}  // namespace tfjob::processes
