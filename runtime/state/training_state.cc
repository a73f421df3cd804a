#include "runtime/state/training_state.h"

#include <set>

#include "runtime/tensor/half.h"

namespace tfjob::state {
namespace {

Status ValidateVariable(const Variable& variable) {
  for (int64_t dim : variable.shape.dims()) {
    if (dim < 0) return InvalidArgument("variable ", variable.name, ": negative dimension ", dim);
  }
  const bool floating = variable.dtype == DType::kFloat32 || variable.dtype == DType::kFloat64;
  if (variable.update == Update::kGradient && !floating) {
    return InvalidArgument("variable ", variable.name,
                           ": an optimizer updates only float32 and float64, ", "not ",
                           Name(variable.dtype));
  }
  if (IsHalf(variable.dtype)) {
    return InvalidArgument("variable ", variable.name, ": the state of a run has no variables of ",
                           Name(variable.dtype), "; keep it in float32");
  }
  const bool adds = variable.update == Update::kAssignAdd;
  if (adds && (variable.dtype == DType::kBool || variable.dtype == DType::kUInt8)) {
    return InvalidArgument("variable ", variable.name, ": cannot add to a value of type ",
                           Name(variable.dtype));
  }
  return Annotate(optimizer::Validate(variable.constraint, variable.shape),
                  StrCat("variable ", variable.name, ": constraint ",
                         optimizer::Name(variable.constraint.kind)));
}

}  // namespace

std::vector<optimizer::Slot> SlotsOf(const Variable& variable,
                                     const optimizer::Optimizer& optimizer) {
  if (variable.update != Update::kGradient) return {};
  return optimizer::Slots(optimizer);
}

Status Validate(const TrainingState& state) {
  std::set<std::string> names;
  for (const Variable& variable : state.variables) {
    if (!names.insert(variable.name).second) {
      return InvalidArgument("two variables are called ", variable.name);
    }
    RETURN_IF_ERROR(ValidateVariable(variable));
  }
  return optimizer::Validate(state.optimizer);
}

}  // namespace tfjob::state
