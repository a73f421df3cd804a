// Contains the objects that the functions of a session share: the devices and, on these devices,
// the variables of the compiled models that the functions use. In a job of several tasks, also
// contains the connection to the other tasks. Private to this package.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/compiled_state.h"
#include "runtime/base/mutex.h"
#include "runtime/steps/memory.h"
#include "runtime/steps/step_group.h"
#include "runtime/steps/step_runner.h"
#include "runtime/train/task.h"

namespace tfjob::api {

class LiveModel;
class TaskGroup;  // task_group.h

// Thread-safe, apart from the models and runners that are passed to it.
class Workspace {
 public:
  // Returns the group of the tasks that take steps together, or null if this task takes them alone.
  // The first call waits until all tasks have made it. Propagates errors from TasksOfLoops and
  // TaskGroup::Create.
  StatusOr<TaskGroup*> Group(const StrategyData& strategy, const config::TrainingConfig& config);
  StatusOr<TaskGroup*> Group(const CompiledData& model) {
    return Group(model.strategy(), model.config);
  }
  // Creates the devices of the model's session, unless they exist. Does not wait for other tasks.
  tfjob::Status Prepare(const CompiledData& model);
  // Returns the model's variables on the devices. Creates them if necessary.
  StatusOr<std::shared_ptr<LiveModel>> Bind(CompiledData& model);
  // Compiles the step. `models` must be the models of the definition.
  StatusOr<std::unique_ptr<steps::StepRunner>> MakeRunner(steps::Definition definition,
                                                          std::span<CompiledData* const> models);

  // Prepares the models and the runner for a run with this number of rows. `models` must be the
  // models of the definition that the runner was created from.
  StatusOr<steps::Totals> PrepareRun(steps::StepRunner& runner,
                                     std::span<CompiledData* const> models, int64_t rows);
  // Runs the step with the newest values of the models, after PrepareRun. `group` are the tasks
  // that run it together; null if there is only this one.
  StatusOr<std::vector<tfjob::Tensor>> Run(steps::StepRunner& runner,
                                           std::span<CompiledData* const> models,
                                           std::span<const tfjob::Tensor> inputs,
                                           const steps::Totals& totals, steps::StepGroup* group);
  // Returns how many functions have been numbered so far.
  int64_t NextFunction();

 private:
  friend class LiveModel;

  Mutex group_mutex_;
  // The other members refer to the group, so it is destroyed last.
  std::shared_ptr<TaskGroup> group_ ABSL_GUARDED_BY(group_mutex_);
  tfjob::Status group_error_ ABSL_GUARDED_BY(group_mutex_);

  Mutex mutex_;
  // Owns the threads of the device, so it is destroyed last.
  std::unique_ptr<train::TaskContext> context_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<steps::Memory> memory_ ABSL_GUARDED_BY(mutex_);
  int64_t models_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of models that have been bound
  int64_t functions_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of runs of functions
};

// The variables of a compiled model in the workspace of its session.
class LiveModel : public LiveValues {
 public:
  LiveModel(std::shared_ptr<Workspace> workspace, steps::StepModel model,
            state::TrainingState training)
      : workspace_(std::move(workspace)),
        model_(std::move(model)),
        training_(std::move(training)) {}

  int64_t step() const override { return step_; }
  StatusOr<std::shared_ptr<const state::Snapshot>> Take() override;
  const steps::StepModel& model() const { return model_; }

 private:
  friend class Workspace;
  tfjob::Status Load(steps::Memory& memory, std::shared_ptr<const state::Snapshot> values);

  const std::shared_ptr<Workspace> workspace_;
  steps::StepModel model_;
  state::TrainingState training_;
  // The values that were last loaded into the variables or copied from them.
  std::shared_ptr<const state::Snapshot> loaded_;
  int64_t step_ = 0;
};

// Describes the model for a step. Adds the prefix to the variables' names.
steps::StepModel StepModelOf(const CompiledData& model, const std::string& prefix);

}  // namespace tfjob::api
