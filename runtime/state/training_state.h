// Declares the state of a training run: its variables, in order, and the optimizer that updates
// them. This declaration is the same in every task of a job. A snapshot (snapshot.h) contains the
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/constraint.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::state {

// Specifies how a task's contribution changes a variable. In synchronous mode, the variable changes
// once per step, by the mean of the step's contributions.
enum class Update : uint8_t {
  kGradient = 0,   // the optimizer applies the contribution; float32 and float64 only
  kAssign = 1,     // the contribution replaces the variable (moving statistics)
  kAssignAdd = 2,  // the contribution is added to the variable
};

struct Variable {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Update update = Update::kGradient;
  optimizer::Constraint constraint = {};  // kGradient: applied after each step

  bool operator==(const Variable&) const = default;
};

struct TrainingState {
  std::vector<Variable> variables;
  optimizer::Optimizer optimizer;

  bool operator==(const TrainingState&) const = default;
};

// Returns the slots that the optimizer keeps for the variable. Returns none if the variable's
// update is not kGradient.
std::vector<optimizer::Slot> SlotsOf(const Variable& variable,
                                     const optimizer::Optimizer& optimizer);

// Returns InvalidArgument, with a message that names the variable or the option, if
//   - two variables have the same name,
//   - a dimension is negative,
//   - a variable's dtype does not allow its update (kGradient needs float32 or float64, and
//     kAssignAdd excludes bool and uint8),
//   - a constraint is incompatible with its variable, or
//   - the optimizer is invalid.
Status Validate(const TrainingState& state);

}  // namespace tfjob::state
