// The state of a job's parameter servers as one value: what a checkpoint holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ps/definition.h"
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
  // What was applied for whom; opaque bytes, to be saved with the rest. "": nothing yet.
  std::string ledger;
};

// InvalidArgument, naming the variable, unless types, shapes and slots fit the definition.
Status CheckFits(const Snapshot& snapshot, const Definition& definition);

}  // namespace tfjob::ps
