// Gives access to the training state of this process: finds the variables and slots in the store
// that programs update, fills them from a snapshot, and takes snapshots of them.
#pragma once

#include <cstdint>
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

  // Returns a snapshot whose tensors share the variables' memory, so that values can be written
  // into it directly (variables::Variable::Memory).
  state::Snapshot Memory();
  // Fills variables and slots. The snapshot must fit (state::CheckFits).
  Status Load(const state::Snapshot& snapshot);
  // Begins to copy the state. `written` are the variables that the next step writes, in the order
  // of the writes: the copy begins with them. See Strategy::BeginSnapshot.
  state::SnapshotCopy BeginCopy(int64_t global_step, std::string ledger,
                                const std::vector<variables::Variable*>& written);

 private:
  LocalState() = default;
  template <typename TensorOf>
  state::Snapshot Collect(TensorOf tensor_of) const;

  std::vector<std::vector<variables::Variable*>> held_;
};

}  // namespace tfjob::strategy
