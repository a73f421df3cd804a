// Provides access to the training state of this process: finds its variables and slots in the store
// that programs update, loads snapshots into them, and takes snapshots of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/state/snapshot.h"
#include "runtime/state/snapshot_copy.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::strategy {

// Owned by one thread. The store must outlive this object.
class LocalState {
 public:
  // Finds the variables and slots of `training`, which `store` must contain.
  static StatusOr<LocalState> Find(const state::TrainingState& training,
                                   const variables::VariableStore& store);

  // Returns each variable, followed by its slots.
  const std::vector<std::vector<variables::Variable*>>& held() const { return held_; }

  // Returns a snapshot whose tensors share the variables' memory, so that a caller can write values
  // directly to the variables (variables::Variable::Memory).
  state::Snapshot Memory();
  // Fills variables and slots. The snapshot must match them (state::CheckFits).
  Status Load(const state::Snapshot& snapshot);
  // Starts a copy of the state; see Strategy::BeginSnapshot. `numbers` contains what the strategy
  // adds to the variables: the step, the ledger, the scale of the loss and the learning rate. Its
  // list of variables is empty. `written` lists the variables that the next step writes, in write
  // order. These variables are copied first.
  state::SnapshotCopy BeginCopy(state::Snapshot numbers,
                                const std::vector<variables::Variable*>& written);

 private:
  LocalState() = default;
  template <typename TensorOf>
  state::Snapshot Collect(TensorOf tensor_of) const;

  std::vector<std::vector<variables::Variable*>> held_;
};

}  // namespace tfjob::strategy
