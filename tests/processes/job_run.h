// A job that `tfjob run` runs as real processes on this machine, for tests that look at its tasks and kill some of them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/cluster/cluster.h"
#include "runtime/progress/progress.h"
#include "tests/processes/program.h"

namespace tfjob::processes {

// A living process of the job.
struct TaskProcess {
  pid_t pid = 0;
  cluster::Task task;
  std::string address;
};

// Owned by one thread. Its destruction stops the job and waits for its end.
class JobRun {
 public:
  // `manifest` is the text of a manifest; `folder` gets the manifest, the state and the output.
  static std::unique_ptr<JobRun> Start(const std::string& manifest, const std::string& folder);

  // The tasks that live now.
  std::vector<TaskProcess> Tasks() const;
  // The task's process, which may take a while to come (again). Pid 0 when it has not come by the deadline.
  TaskProcess Await(const cluster::Task& task, Duration timeout, pid_t other_than = 0) const;
  // The largest global step that any task shows, -1 when none answers.
  int64_t Step() const;
  // What one task shows; nothing when it does not answer.
  std::optional<progress::Progress> ProgressOf(const cluster::Task& task) const;
  // The global step that one task shows, -1 when it does not answer.
  int64_t StepOf(const cluster::Task& task) const;
  // Waits until some task shows this step. False when the job ended or the time was up first.
  bool AwaitStep(int64_t step, Duration timeout);
  // Waits until the chief shows this part of its last step. False as above.
  bool AwaitPart(double part, Duration timeout);
  // Sends a signal to a task's process. Returns its pid, 0 when there is none.
  pid_t SignalTask(const cluster::Task& task, int number) const;

  // Of `tfjob run`: see Program.
  bool Ended() { return program_.Ended(); }
  int AwaitEnd(Duration timeout) { return program_.AwaitEnd(timeout); }
  void Signal(int number) const { program_.Signal(number); }
  pid_t pid() const { return program_.pid(); }
  std::string Output() const { return program_.Output(); }

 private:
  JobRun(const std::string& path, const std::vector<std::string>& arguments,
         const std::string& output)
      : program_(path, arguments, {}, output) {}

  Program program_;
};

// The value of "accuracy=…" in the last line that has one, or -1.
double LastAccuracy(const std::string& text);

}  // namespace tfjob::processes
