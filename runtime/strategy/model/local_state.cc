#include "runtime/strategy/model/local_state.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace tfjob::strategy {
namespace {

// Starts copies of variables, and collects the copies so that they can be finished later.
class Copies {
 public:
  explicit Copies(const std::vector<variables::Variable*>& written) : written_(written) {}

  // Starts a copy of the variable. The returned tensor contains the value once the function that
  // Finisher returns has run.
  Tensor Begin(variables::Variable& variable) {
    Tensor value(variable.dtype(), variable.shape(), Buffer::Contents::kUndefined);
    const auto place = std::ranges::find(written_, &variable) - written_.begin();
    copies_.emplace_back(place, variable.BeginCopy(value));
    return value;
  }
  // Returns a function that finishes the copies, in the order in which the next step writes the
  // variables.
  std::function<void()> Finisher() && {
    std::ranges::stable_sort(copies_, {}, &Copy::first);
    return [copies = std::move(copies_)] {
      for (const Copy& copy : copies) copy.second->Finish();
    };
  }

 private:
  using Copy = std::pair<ptrdiff_t, std::shared_ptr<variables::ValueCopy>>;

  const std::vector<variables::Variable*>& written_;
  std::vector<Copy> copies_;
};

}  // namespace

StatusOr<LocalState> LocalState::Find(const state::TrainingState& training,
                                      const variables::VariableStore& store) {
  LocalState state;
  for (const state::Variable& variable : training.variables) {
    ASSIGN_OR_RETURN(variables::Variable * own, store.Get(variable.name));
    std::vector<variables::Variable*> held{own};
    for (const optimizer::Slot& slot : state::SlotsOf(variable, training.optimizer)) {
      ASSIGN_OR_RETURN(variables::Variable * found,
                       store.Get(StrCat(variable.name, "/", slot.suffix)));
      held.push_back(found);
    }
    state.held_.push_back(std::move(held));
  }
  return state;
}

// Returns a snapshot of the tensors that `tensor_of` returns for the variables and slots.
template <typename TensorOf>
state::Snapshot LocalState::Collect(TensorOf tensor_of) const {
  state::Snapshot snapshot;
  for (const std::vector<variables::Variable*>& held : held_) {
    state::VariableState state{.value = std::invoke(tensor_of, *held[0]), .slots = {}};
    for (size_t s = 1; s < held.size(); ++s)
      state.slots.push_back(std::invoke(tensor_of, *held[s]));
    snapshot.variables.push_back(std::move(state));
  }
  return snapshot;
}

state::Snapshot LocalState::Memory() {
  return Collect(&variables::Variable::Memory);
}

Status LocalState::Load(const state::Snapshot& snapshot) {
  for (size_t v = 0; v < held_.size(); ++v) {
    const state::VariableState& state = snapshot.variables[v];
    RETURN_IF_ERROR(held_[v][0]->FromTensor(state.value));
    for (size_t s = 0; s < state.slots.size(); ++s)
      RETURN_IF_ERROR(held_[v][1 + s]->FromTensor(state.slots[s]));
  }
  return OkStatus();
}

state::SnapshotCopy LocalState::BeginCopy(state::Snapshot numbers,
                                          const std::vector<variables::Variable*>& written) {
  Copies copies(written);
  numbers.variables =
      Collect([&](variables::Variable& variable) { return copies.Begin(variable); }).variables;
  return state::SnapshotCopy(std::move(numbers), std::move(copies).Finisher());
}

}  // namespace tfjob::strategy
