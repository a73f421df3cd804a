#include "runtime/state/snapshot.h"

#include <algorithm>

namespace tfjob::state {
namespace {

Tensor Filled(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  if (value == 0) return tensor;  // already zero, without its memory having been touched
  if (dtype == DType::kFloat64) {
    std::ranges::fill(tensor.data<double>(), value);
  } else {
    std::ranges::fill(tensor.data<float>(), static_cast<float>(value));
  }
  return tensor;
}

Status CheckSlots(const Variable& variable, size_t expected, size_t held) {
  if (held == expected) return OkStatus();
  return InvalidArgument(variable.name, ": expected ", expected, " slots, got ", held);
}

Status CheckTensor(const Variable& variable, const std::string& what, const Tensor& tensor) {
  if (tensor.dtype() == variable.dtype && tensor.shape() == variable.shape) return OkStatus();
  return InvalidArgument(what, ": expected ", Name(variable.dtype), variable.shape.ToString(),
                         ", got ", Name(tensor.dtype()), tensor.shape().ToString());
}

}  // namespace

Tensor InitialSlot(const Variable& variable, const optimizer::Slot& slot, const Tensor& value) {
  if (slot.starts_as_variable) return value.Clone();
  return Filled(variable.dtype, variable.shape, slot.initial_value);
}

std::shared_ptr<const StreamedValue> InitialSlot(const Variable& variable,
                                                 const optimizer::Slot& slot,
                                                 std::shared_ptr<const StreamedValue> value) {
  return slot.starts_as_variable ? std::move(value)
                                 : StreamedConstant(variable.dtype, slot.initial_value);
}

StatusOr<Tensor> ReadWhole(const Variable& variable, const StreamedValue& value) {
  Tensor whole(variable.dtype, variable.shape, Buffer::Contents::kUndefined);
  RETURN_IF_ERROR(value.Read(0, whole.bytes()));
  return whole;
}

VariableState VariableState::Initial(const Variable& variable,
                                     const optimizer::Optimizer& optimizer, Tensor value) {
  VariableState state{.value = std::move(value), .slots = {}, .streamed = {}};
  for (const optimizer::Slot& slot : SlotsOf(variable, optimizer))
    state.slots.push_back(InitialSlot(variable, slot, state.value));
  return state;
}

VariableState VariableState::Initial(const Variable& variable,
                                     const optimizer::Optimizer& optimizer,
                                     std::shared_ptr<const StreamedValue> value) {
  VariableState state;
  state.streamed.push_back(value);
  for (const optimizer::Slot& slot : SlotsOf(variable, optimizer))
    state.streamed.push_back(InitialSlot(variable, slot, value));
  return state;
}

void UseAverages(const TrainingState& state, Snapshot& snapshot) {
  const int average = optimizer::AverageSlot(state.optimizer);
  if (average < 0) return;
  for (VariableState& variable : snapshot.variables) {
    if (!variable.slots.empty()) variable.value = variable.slots[static_cast<size_t>(average)];
    if (variable.streamed.size() > 1)
      variable.streamed[0] = variable.streamed[1 + static_cast<size_t>(average)];
  }
}

bool HasStreamedValues(const Snapshot& snapshot) {
  return std::ranges::any_of(
      snapshot.variables, [](const VariableState& variable) { return !variable.streamed.empty(); });
}

bool IsLost(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.variables, [](const VariableState& variable) {
    return std::ranges::any_of(variable.streamed, [](const auto& value) { return value->lost(); });
  });
}

Status CheckFits(const Snapshot& snapshot, const TrainingState& state) {
  if (snapshot.variables.size() != state.variables.size()) {
    return InvalidArgument("the state has ", snapshot.variables.size(), " variables, the job ",
                           state.variables.size());
  }
  for (size_t i = 0; i < snapshot.variables.size(); ++i) {
    const Variable& variable = state.variables[i];
    const VariableState& held = snapshot.variables[i];
    const std::vector<optimizer::Slot> slots = SlotsOf(variable, state.optimizer);
    if (!held.streamed.empty()) {
      RETURN_IF_ERROR(CheckSlots(variable, slots.size(), held.streamed.size() - 1));
      continue;
    }
    RETURN_IF_ERROR(CheckTensor(variable, variable.name, held.value));
    RETURN_IF_ERROR(CheckSlots(variable, slots.size(), held.slots.size()));
    for (size_t s = 0; s < slots.size(); ++s) {
      RETURN_IF_ERROR(
          CheckTensor(variable, StrCat(variable.name, "/", slots[s].suffix), held.slots[s]));
    }
  }
  return OkStatus();
}

}  // namespace tfjob::state
