// Compiles and runs a step on the devices of a task, alone or together with other tasks.
//
//   ASSIGN_OR_RETURN(auto runner, StepRunner::Create(definition, memory));
//   ASSIGN_OR_RETURN(Totals totals, runner->Prepare(inputs[0].shape().dim(0)));
//   // With several tasks: add up the totals of all tasks.
//   ASSIGN_OR_RETURN(std::vector<Tensor> results, runner->Run(inputs, run, steps, totals));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/program.h"
#include "runtime/steps/definition.h"
#include "runtime/steps/memory.h"
#include "runtime/steps/step_graph.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::steps {

// The totals over the replicas (the devices of all tasks) that take a step.
struct Totals {
  int64_t examples = 0;
  int64_t replicas = 0;         // that have examples
  std::vector<int64_t> counts;  // per result: the elements along the first axis, which it reduces
};

// Compiles and runs a step. Must be used on the same thread as the memory.
class StepRunner {
 public:
  // Checks the definition, and creates the slots of the optimizers that the step applies. The
  // memory must already contain the variables of the step's models.
  static StatusOr<std::unique_ptr<StepRunner>> Create(Definition definition,
                                                      std::shared_ptr<Memory> memory);
  ~StepRunner();

  const Definition& definition() const { return definition_; }
  // Returns whether the step changes any variable of the model: trainable variables by gradients,
  // or moving statistics.
  bool changes(size_t model) const { return changes_[model]; }
  // Returns whether the step applies the model's optimizer.
  bool applies(size_t model) const { return applies_[model]; }

  // Compiles the programs for this number of rows, unless they exist, and returns the totals over
  // the devices of this task. The rows are divided among the devices; a device's part may be empty.
  StatusOr<Totals> Prepare(int64_t rows);

  // Runs the step, and returns the values of the results in order. `inputs` must have the types in
  // the definition, and the number of rows that was last passed to Prepare. `run` makes the random
  // numbers of different runs differ. steps[m] is the number of previous updates of model m.
  // `totals` are those of all tasks. All tasks must call Run with the same `run`, `steps` and
  // totals; the results with one row per example are those of this task's rows.
  //
  // If an op rejects the values of its inputs, returns the error of the op. In this case, no
  // optimizer has been applied, but moving statistics may have changed, and the caller must notify
  // the other tasks, because they wait for this task. Does not check whether numbers are finite.
  StatusOr<std::vector<Tensor>> Run(std::span<const Tensor> inputs, int64_t run,
                                    std::span<const int64_t> steps, const Totals& totals);
  // Returns whether the last run has failed because other tasks could not be reached.
  bool exchange_failed() const { return exchange_failed_; }

 private:
  struct Compiled;
  struct OnDevice;

  StepRunner(Definition definition, std::shared_ptr<Memory> memory);
  // Returns the device's program for this number of rows. Compiles the program if necessary.
  StatusOr<Compiled*> ProgramFor(int device, int64_t rows);
  void FindFeeds(Compiled& compiled);
  // Allocates memory for the values that are summed over all replicas. Sets the memory of the
  // changes as the feeds of the program that updates the device's variables.
  void AllocateSums(const std::vector<Change>& changes, OnDevice& device);
  Status PrepareUpdates(const BuiltStep& built);
  Status Compute(int device, std::span<const Tensor> inputs);
  Status KeepSums(int device, Compiled& compiled, int64_t rows);
  Status Update(int device);
  Tensor Combine(size_t result);

  const Definition definition_;
  const std::shared_ptr<Memory> memory_;
  std::vector<bool> changes_, applies_;     // one per model
  std::vector<graph::TensorType> results_;  // types; the first axis of unreduced results varies
  std::vector<std::unique_ptr<OnDevice>> devices_;
  // The numbers that are fed to the programs in the current run.
  int64_t run_ = 0;
  int64_t rows_ = 0;  // rows of all devices of this task
  Totals totals_;
  float examples_ = 0;  // totals_.examples
  bool exchange_failed_ = false;
  std::vector<int64_t> steps_;
};

}  // namespace tfjob::steps
