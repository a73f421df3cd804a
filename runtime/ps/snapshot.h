// Holds the state of a job's parameter servers as one value, as a checkpoint stores it.
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
  std::vector<Tensor> slots;  // in the order of optimizer::Slots; empty unless Update::kGradient

  // Returns `value` with slots at their initial values.
  static VariableState Initial(const Variable& variable, const optimizer::Optimizer& optimizer,
                               Tensor value);
};

struct Snapshot {
  int64_t global_step = 0;
  std::vector<VariableState> variables;  // parallel to Definition::variables
  // Contributions applied per task, in the format of Store::SetLedger. Must be saved with the rest.
  // "": none yet.
  std::string ledger;
};

// Returns InvalidArgument, naming the variable, unless types, shapes and slots match
// the definition.
Status CheckFits(const Snapshot& snapshot, const Definition& definition);

// Returns the ledger lines that a server needs: those of its own shards and those of no shard (a
// negative number). An unreadable line is kept, so that the server refuses it.
std::string LedgerOf(std::string_view ledger, const std::vector<Shard>& shards, int server);

}  // namespace tfjob::ps
