// Declares the functions and classes that update.cc and general_update.cc share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::kernels::cuda {

// Returns the optimizer's schedule as a parameter of the kernel LearningRate, without pointers.
// Returns Unimplemented if the schedule has too many boundaries.
StatusOr<LearningRateParameter> ScheduleOf(const optimizer::Optimizer& o);

// Finds the row of the gradient that belongs to each row of a variable.
class RowIndex {
 public:
  // `values` is the number of rows of the gradient, and `rows` that of the variable.
  static StatusOr<RowIndex> Create(const Launcher& launcher, int64_t values, int64_t rows);

  size_t bytes() const { return static_cast<size_t>(rows_) * sizeof(int32_t); }
  // Submits the kernels that write the index to `space`, which must have bytes() bytes. `numbers`
  // contains, for each row of the gradient, the index of the variable's row.
  const int32_t* Submit(const int64_t* numbers, void* space, Stream& stream) const;

 private:
  RowIndex(Launcher launcher, std::unique_ptr<Kernel> clear, int64_t values, int64_t rows)
      : launcher_(std::move(launcher)), clear_(std::move(clear)), values_(values), rows_(rows) {}

  Launcher launcher_;
  std::unique_ptr<Kernel> clear_;  // sets the index to -1
  int64_t values_, rows_;
};

// Prepares ApplyOptimizer or ApplyOptimizerRows with the kernel GeneralUpdate. The caller must have
// checked that the operands match the optimizer (update.cc).
Prepared PrepareGeneralUpdate(const Launcher& launcher, const KernelRequest& request,
                              const optimizer::Optimizer& o);

}  // namespace tfjob::kernels::cuda
