#include "runtime/ps/snapshot.h"

#include <algorithm>
#include <charconv>

namespace tfjob::ps {
namespace {

Tensor Filled(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  if (dtype == DType::kFloat64) {
    std::ranges::fill(tensor.data<double>(), value);
  } else {
    std::ranges::fill(tensor.data<float>(), static_cast<float>(value));
  }
  return tensor;
}

Status CheckTensor(const Variable& variable, const std::string& what, const Tensor& tensor) {
  if (tensor.dtype() == variable.dtype && tensor.shape() == variable.shape) return OkStatus();
  return InvalidArgument(what, ": expected ", Name(variable.dtype), variable.shape.ToString(),
                         ", got ", Name(tensor.dtype()), tensor.shape().ToString());
}

// Returns whether a line begins with the number of a shard of another server or of no server.
bool IsOfAnother(std::string_view line, const std::vector<Shard>& shards, int server) {
  int64_t shard = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), shard);
  if (read.ec != std::errc() || shard < 0) return false;
  const auto place = static_cast<size_t>(shard);
  return place >= shards.size() || shards[place].server != server;
}

}  // namespace

VariableState VariableState::Initial(const Variable& variable,
                                     const optimizer::Optimizer& optimizer, Tensor value) {
  VariableState state{.value = std::move(value), .slots = {}};
  if (variable.update != Update::kGradient) return state;
  for (const optimizer::Slot& slot : optimizer::Slots(optimizer)) {
    state.slots.push_back(Filled(variable.dtype, variable.shape, slot.initial_value));
  }
  return state;
}

Status CheckFits(const Snapshot& snapshot, const Definition& definition) {
  if (snapshot.variables.size() != definition.variables.size()) {
    return InvalidArgument("the state has ", snapshot.variables.size(), " variables, the job ",
                           definition.variables.size());
  }
  const std::vector<optimizer::Slot> slots = optimizer::Slots(definition.optimizer);
  for (size_t i = 0; i < snapshot.variables.size(); ++i) {
    const Variable& variable = definition.variables[i];
    const VariableState& state = snapshot.variables[i];
    RETURN_IF_ERROR(CheckTensor(variable, variable.name, state.value));
    const size_t wanted = variable.update == Update::kGradient ? slots.size() : 0;
    if (state.slots.size() != wanted) {
      return InvalidArgument(variable.name, ": expected ", wanted, " slots, got ",
                             state.slots.size());
    }
    for (size_t s = 0; s < wanted; ++s) {
      RETURN_IF_ERROR(
          CheckTensor(variable, StrCat(variable.name, "/", slots[s].suffix), state.slots[s]));
    }
  }
  return OkStatus();
}

std::string LedgerOf(std::string_view ledger, const std::vector<Shard>& shards, int server) {
  std::string own;
  while (!ledger.empty()) {
    const std::string_view line = ledger.substr(0, ledger.find('\n'));
    if (!IsOfAnother(line, shards, server)) own.append(line).append("\n");
    ledger.remove_prefix(std::min(line.size() + 1, ledger.size()));
  }
  return own;
}

}  // namespace tfjob::ps
