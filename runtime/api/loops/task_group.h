// Connects the tasks of a job whose programs contain their own training loops. Private to this
// package.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "runtime/api/compiled_state.h"
#include "runtime/base/mutex.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/rpc/server.h"
#include "runtime/steps/step_group.h"
#include "runtime/train/task.h"

namespace tfjob::api {

// Returns the number of tasks that take the steps of custom training loops together; 1 if this task
// takes them alone. Returns Unimplemented if custom training loops do not support the strategy or
// the role of this task, and InvalidArgument if the job cannot use the strategy.
StatusOr<int> TasksOfLoops(const StrategyData& strategy);

// The tasks of a job, after they have found each other. If one of them is lost, all calls of the
// others fail, until they are started again.
class TaskGroup {
 public:
  // Waits until all tasks of the job have called Create. Uses only `config.strategy`, and settings
  // that all tasks of any role have.
  static StatusOr<std::shared_ptr<TaskGroup>> Create(const StrategyData& strategy,
                                                     config::TrainingConfig config);
  // Waits until all tasks have reached this point, or one of them is lost. A task that makes
  // another call instead of reaching this point gets an error.
  ~TaskGroup();

  // Protects the order of the operations: hold the mutex from the announcement of a call to its
  // end.
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  steps::StepGroup& steps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return *steps_; }

 private:
  explicit TaskGroup(train::TaskOptions options);
  tfjob::Status Join();
  void OnEvent(const state::PeerEvent& event);
  // If this task leads the group, waits until the other tasks have left it, but at most a second:
  // they learn from the leader which task was lost, and a program usually exits after the error.
  void LetOthersLearn();

  train::TaskContext context_;
  std::atomic<bool> over_ = false;  // later events are of no interest
  Mutex lost_mutex_;
  CondVar lost_changed_;
  std::set<std::string> lost_ ABSL_GUARDED_BY(lost_mutex_);  // tasks
  std::unique_ptr<collectives::Endpoint> endpoint_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<collectives::Group> group_;
  Mutex mutex_;
  std::unique_ptr<steps::StepGroup> steps_ ABSL_GUARDED_BY(mutex_);
};

// Returns the number of the model's updates, or -1 if its values may differ from those of the other
// tasks, because the program has set or read them since the last call that the tasks made together.
int64_t StepsToAnnounce(const CompiledData& model);

// Replaces the values of the model in all tasks with those of rank 0. All tasks must call it.
tfjob::Status ShareValues(CompiledData& model, steps::StepGroup& group);

}  // namespace tfjob::api
