// Declares the state of a training run: its variables, in order, and the optimizer that updates
// them. It is the same in every task of a job. A snapshot (snapshot.h) holds the values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::state {

// How a task's contribution to a variable changes the variable. In synchronous mode, this is done
// once per step, with the mean of the step's contributions.
enum class Update : uint8_t {
  kGradient = 0,   // is applied by the optimizer; float32 and float64 only
  kAssign = 1,     // replaces the variable (moving statistics)
  kAssignAdd = 2,  // is added to the variable
};

struct Variable {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Update update = Update::kGradient;

  bool operator==(const Variable&) const = default;
};

struct TrainingState {
  std::vector<Variable> variables;
  optimizer::Optimizer optimizer;

  bool operator==(const TrainingState&) const = default;
};

// Returns the slots that the optimizer keeps for the variable; none unless its update is kGradient.
std::vector<optimizer::Slot> SlotsOf(const Variable& variable,
                                     const optimizer::Optimizer& optimizer);

// Returns InvalidArgument, with a message that names the variable or the option, for two variables
// with the same name, a negative dimension, gradients for a type other than float32 and float64,
// additions to booleans or bytes, or an invalid optimizer.
Status Validate(const TrainingState& state);

}  // namespace tfjob::state
