#include "runtime/exec/slots.h"

#include <algorithm>
#include <string>

#include "runtime/tensor/tensor.h"

namespace tfjob::exec {
namespace {

using variables::Kind;
using variables::Variable;

Tensor Filled(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  if (dtype == DType::kFloat64) {
    std::ranges::fill(tensor.data<double>(), value);
  } else {
    std::ranges::fill(tensor.data<float>(), static_cast<float>(value));
  }
  return tensor;
}

}  // namespace

StatusOr<std::vector<Variable*>> FindOrCreateSlots(const optimizer::Optimizer& optimizer,
                                                   const Variable& variable,
                                                   variables::VariableStore& store) {
  const DType dtype = variable.dtype();
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    return InvalidArgument("variable ", variable.name(),
                           ": optimizers train float32 and float64, not ", Name(dtype));
  }
  std::vector<Variable*> slots;
  for (const optimizer::Slot& slot : optimizer::Slots(optimizer)) {
    const std::string name = variable.name() + "/" + slot.suffix;
    Variable* found = store.Find(name);
    if (found == nullptr) {
      ASSIGN_OR_RETURN(found, store.Create(name, dtype, variable.shape(), Kind::kSlot));
      // A new variable already contains zeros, so only other initial values need to be written.
      if (slot.starts_as_variable) {
        RETURN_IF_ERROR(found->FromTensor(variable.ToTensor()));
      } else if (slot.initial_value != 0) {
        RETURN_IF_ERROR(found->FromTensor(Filled(dtype, variable.shape(), slot.initial_value)));
      }
    }
    if (found->kind() != Kind::kSlot || found->dtype() != dtype ||
        found->shape() != variable.shape()) {
      return InvalidArgument("variable ", name, " is ", variables::Name(found->kind()), " ",
                             Name(found->dtype()), found->shape().ToString(),
                             ", expected the slot ", slot.name, " ", Name(dtype),
                             variable.shape().ToString());
    }
    slots.push_back(found);
  }
  return slots;
}

}  // namespace tfjob::exec
