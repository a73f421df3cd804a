// Runs a job with `tfjob run`, as real processes on this machine, for tests that observe its tasks
// and kill some of them.
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

// Owned by one thread. The destructor stops the job and waits for its end.
class JobRun {
 public:
  // `manifest` is the text of a manifest. The manifest, the state and the output go to `folder`.
  static std::unique_ptr<JobRun> Start(const std::string& manifest, const std::string& folder);

  // Returns the tasks that are running now.
  std::vector<TaskProcess> Tasks() const;
  // Waits for the task's (re)started process. Returns pid 0 if there is none by the deadline.
  TaskProcess Await(const cluster::Task& task, Duration timeout, pid_t other_than = 0) const;
  // Returns the largest global step that any task reports; -1 if none answers.
  int64_t Step() const;
  // Returns the progress that a task reports; nullopt if it does not answer.
  std::optional<progress::Progress> ProgressOf(const cluster::Task& task) const;
  // Returns the global step that a task reports; -1 if it does not answer.
  int64_t StepOf(const cluster::Task& task) const;
  // Waits until any task reports this step. Returns false if the job ended or the time
  // expired first.
  bool AwaitStep(int64_t step, Duration timeout);
  // Waits until the chief has done this fraction of its steps. Returns false as above.
  bool AwaitPart(double part, Duration timeout);
  // Sends a signal to a task's process. Returns its pid; 0 if there is none.
  pid_t SignalTask(const cluster::Task& task, int number) const;

  // These apply to `tfjob run`; see Program.
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

// Returns the value of "accuracy=…" in the last line that contains one, or -1.
double LastAccuracy(const std::string& text);

}  // namespace tfjob::processes
