// Defines a snapshot: the state of a training run at one step, as a checkpoint stores it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/state/learning_rate.h"
#include "runtime/state/loss_scale.h"
#include "runtime/state/streamed_value.h"
#include "runtime/state/training_state.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::state {

// Returns the initial value of a slot of `variable`, whose own value is `value`.
Tensor InitialSlot(const Variable& variable, const optimizer::Slot& slot, const Tensor& value);
std::shared_ptr<const StreamedValue> InitialSlot(const Variable& variable,
                                                 const optimizer::Slot& slot,
                                                 std::shared_ptr<const StreamedValue> value);

// Reads the whole value of a variable or slot into memory.
StatusOr<Tensor> ReadWhole(const Variable& variable, const StreamedValue& value);

struct VariableState {
  Tensor value;
  std::vector<Tensor> slots;  // in the order of SlotsOf
  // If not empty, the variable is too large for memory: `value` and `slots` are empty, and
  // `streamed` provides the value, followed by the slots.
  std::vector<std::shared_ptr<const StreamedValue>> streamed;

  // Returns the number of tensors: the value and the slots.
  size_t parts() const { return streamed.empty() ? 1 + slots.size() : streamed.size(); }
  // Returns `value` with slots at their initial values.
  static VariableState Initial(const Variable& variable, const optimizer::Optimizer& optimizer,
                               Tensor value);
  static VariableState Initial(const Variable& variable, const optimizer::Optimizer& optimizer,
                               std::shared_ptr<const StreamedValue> value);
};

struct Snapshot {
  int64_t global_step = 0;
  std::vector<VariableState> variables;  // parallel to TrainingState::variables
  // The ledger: records which contributions of each task the snapshot contains. Empty if there is
  // no record. The ledger is private to the strategy that took the snapshot. All other code saves
  // and restores it without reading or changing it.
  std::string ledger;
  // Set if the model computes in float16 and the run has performed a step.
  std::optional<LossScale> loss_scale = {};
  // The rate of the next update, if the run has set one (Strategy::SetLearningRate).
  std::optional<LearningRate> learning_rate = {};
};

// Replaces every variable with its moving average, as Keras does at the end of training. Has no
// effect if the optimizer keeps no averages (use_ema).
void UseAverages(const TrainingState& state, Snapshot& snapshot);

// Returns whether a variable's value is streamed.
bool HasStreamedValues(const Snapshot& snapshot);
// Returns whether a streamed value is lost (StreamedValue::lost).
bool IsLost(const Snapshot& snapshot);

// Returns InvalidArgument unless the snapshot's variables have the types, shapes and slots that
// `state` declares. The message names the variable. Does not check the ledger, or the types and
// shapes of streamed values.
Status CheckFits(const Snapshot& snapshot, const TrainingState& state);

}  // namespace tfjob::state
