// Compiles and runs a step on the devices of a task.
//
//   ASSIGN_OR_RETURN(auto runner, StepRunner::Create(definition, memory));
//   ASSIGN_OR_RETURN(std::vector<Tensor> results, runner->Run(inputs, run, steps));
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

  // Runs the step, and returns the values of the results in order. `inputs` must have the types in
  // the definition, and the same number of rows, at least 1. The rows are divided among the
  // devices; a device's part may be empty. `run` makes the random numbers of different runs differ.
  // steps[m] is the number of previous updates of model m.
  //
  // The first run with a given number of rows compiles programs for this number. If an op rejects
  // the values of its inputs, returns the error of the op. In this case, no optimizer has been
  // applied, but moving statistics may have changed. Does not check whether numbers are finite.
  StatusOr<std::vector<Tensor>> Run(std::span<const Tensor> inputs, int64_t run,
                                    std::span<const int64_t> steps);

 private:
  struct Compiled;
  struct OnDevice;

  StepRunner(Definition definition, std::shared_ptr<Memory> memory);
  // Returns the device's program for this number of rows. Compiles the program if necessary.
  StatusOr<Compiled*> ProgramFor(int device, int64_t rows);
  void FindFeeds(Compiled& compiled);
  // Allocates memory for the changes. Sets this memory as the feeds of the program that updates the
  // device's variables.
  void AllocateChanges(const std::vector<Change>& changes, OnDevice& device);
  Status Compute(int device, std::span<const Tensor> inputs);
  Status KeepChanges(int device, Compiled& compiled, int64_t rows);
  Status Update(int device);
  std::vector<Tensor> Combine();

  const Definition definition_;
  const std::shared_ptr<Memory> memory_;
  std::vector<bool> changes_, applies_;  // one per model
  std::vector<std::unique_ptr<OnDevice>> devices_;
  // The numbers that are fed to the programs in the current run.
  int64_t run_ = 0;
  int64_t rows_ = 0;    // rows of all devices
  float examples_ = 0;  // the same number as a float
  std::vector<int64_t> steps_;
};

}  // namespace tfjob::steps
