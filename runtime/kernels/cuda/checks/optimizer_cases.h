// Lists the optimizer updates to compare with the CPU's.
#pragma once

#include <vector>

#include "runtime/kernels/cuda/checks/comparison.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::kernels::cuda {

inline constexpr double kUpdateTolerance = 1e-5;

// Returns every kind of optimizer with its default options, and some kinds also with each of their
// other options.
std::vector<optimizer::Optimizer> OptimizersToCompare();

// Adds slots to the operands. Their values are positive, because some slots are means of squares.
void AddSlots(const optimizer::Optimizer& optimizer, const Shape& shape,
              std::vector<RandomOperand>& inputs, std::vector<RandomOperand>& outputs);

}  // namespace tfjob::kernels::cuda
