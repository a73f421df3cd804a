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

// Owned by the thread that owns the memory.
class StepRunner {
 public:
  // Checks the definition, and creates the slots of the optimizers that it applies. The memory must
  // have the variables of its models.
  static StatusOr<std::unique_ptr<StepRunner>> Create(Definition definition,
                                                      std::shared_ptr<Memory> memory);
  ~StepRunner();

  const Definition& definition() const { return definition_; }
  // Returns whether the step changes variables of the model, by gradients or as moving statistics.
  bool changes(size_t model) const { return changes_[model]; }
  // Returns whether the step applies the model's optimizer.
  bool applies(size_t model) const { return applies_[model]; }

  // Runs the step, and returns the values of the results, in their order. `inputs` have the types
  // of the definition, and the same number of rows, at least 1; each device takes a part of the
  // rows, which may be empty. `run` distinguishes the random numbers of different runs. steps[m] is
  // the number of updates of model m before this one.
  //
  // The first run with a certain number of rows compiles programs for this number. If an op rejects
  // the values of its inputs, returns its error; no optimizer has then been applied, but moving
  // statistics may have changed. Does not check whether numbers are finite.
  StatusOr<std::vector<Tensor>> Run(std::span<const Tensor> inputs, int64_t run,
                                    std::span<const int64_t> steps);

 private:
  struct Compiled;
  struct OnDevice;

  StepRunner(Definition definition, std::shared_ptr<Memory> memory);
  // Returns the program of the device for this number of rows.
  StatusOr<Compiled*> ProgramFor(int device, int64_t rows);
  void FindFeeds(Compiled& compiled);
  // Allocates memory for the changes, and makes it the feeds of the device's updates.
  void AllocateChanges(const std::vector<Change>& changes, OnDevice& device);
  Status Compute(int device, std::span<const Tensor> inputs);
  Status KeepChanges(int device, Compiled& compiled, int64_t rows);
  Status Update(int device);
  std::vector<Tensor> Combine();

  const Definition definition_;
  const std::shared_ptr<Memory> memory_;
  std::vector<bool> changes_, applies_;  // by model
  std::vector<std::unique_ptr<OnDevice>> devices_;
  // The numbers that are fed in the current run.
  int64_t run_ = 0;
  int64_t rows_ = 0;    // of all devices
  float examples_ = 0;  // the same number
  std::vector<int64_t> steps_;
};

}  // namespace tfjob::steps
