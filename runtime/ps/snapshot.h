// The state of a job's parameter servers as one value: what a checkpoint holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ps/definition.h"
#include "runtime/ps/placement.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::ps {

struct VariableState {
  Tensor value;
  std::vector<Tensor> slots;  // as optimizer::Slots orders them; none unless Update::kGradient

  // Slots with their initial values.
  static VariableState Initial(const Variable& variable, const optimizer::Optimizer& optimizer,
                               Tensor value);
};

struct Snapshot {
  int64_t global_step = 0;
  std::vector<VariableState> variables;  // as Definition::variables
  // What was applied for whom, as Store::SetLedger reads it; to be saved with the rest. "": nothing yet.
  std::string ledger;
};

// InvalidArgument, naming the variable, unless types, shapes and slots fit the definition.
Status CheckFits(const Snapshot& snapshot, const Definition& definition);

// The lines of a ledger that a server needs: of its own shards, and of none (a number below 0). A line that cannot be read
// is kept, for the server to refuse.
std::string LedgerOf(std::string_view ledger, const std::vector<Shard>& shards, int server);

}  // namespace tfjob::ps
