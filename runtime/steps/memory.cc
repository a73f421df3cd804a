#include "runtime/steps/memory.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/shared/thread_communicator.h"
#include "runtime/exec/slots.h"

namespace tfjob::steps {
namespace {

// Calls visit(variable, -1), and then visit(slot, index) for each slot. `slot` is null if the slot
// does not exist.
template <typename Visit>
Status ForEachPart(const StepModel& model, const state::TrainingState& training, size_t v,
                   const variables::VariableStore& store, const Visit& visit) {
  const std::string& name = model.variables[v].name;
  ASSIGN_OR_RETURN(variables::Variable * variable, store.Get(name));
  RETURN_IF_ERROR(visit(variable, -1));
  const std::vector<optimizer::Slot> slots =
      state::SlotsOf(training.variables[v], training.optimizer);
  for (size_t s = 0; s < slots.size(); ++s) {
    RETURN_IF_ERROR(visit(store.Find(StrCat(name, "/", slots[s].suffix)), static_cast<int>(s)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Memory>> Memory::Create(const MemoryOptions& options) {
  ENFORCE(options.tasks == 1 || options.devices == 1, "one device per task if there are several");
  if (options.devices > 1 && !options.device.runtime->immediate()) {
    return Unimplemented("strategy.devices: only CPUs can be divided into devices, but the task ",
                         "computes on ", options.device.name, "; use Strategy::OneDevice");
  }
  std::unique_ptr<Memory> memory(new Memory());
  memory->task_ = options.task;
  memory->tasks_ = options.tasks;
  memory->places_.resize(static_cast<size_t>(options.devices));
  std::vector<std::unique_ptr<collectives::Communicator>> communicators;
  if (options.devices > 1) communicators = collectives::MakeThreadCommunicators(options.devices);
  for (int i = 0; i < options.devices; ++i) {
    Place& place = memory->place(i);
    place.device = options.device;
    if (options.devices > 1) {
      const auto threads = collectives::SliceOf(options.threads, i, options.devices).count;
      if (threads > 1)
        place.pool = std::make_unique<ThreadPool>("compute", static_cast<int>(threads) - 1);
      place.device.pool = place.pool.get();
      place.communicator = std::move(communicators[static_cast<size_t>(i)]);
    }
    place.store =
        std::make_unique<variables::VariableStore>(place.device.row_stride, place.device.runtime);
  }
  memory->threads_ = std::make_unique<strategy::DeviceThreads>(options.devices);
  return memory;
}

Status Memory::OnEveryDevice(absl::FunctionRef<Status(int)> work) {
  threads_->Run([&](int device) { place(device).status = work(device); });
  for (const Place& place : places_) RETURN_IF_ERROR(place.status);
  return OkStatus();
}

Status Memory::AddVariables(const StepModel& model) {
  for (Place& place : places_) {
    for (const model::VariableSpec& variable : model.variables) {
      const auto kind =
          variable.trained() ? variables::Kind::kTrainable : variables::Kind::kMovingStatistic;
      RETURN_IF_ERROR(
          place.store->Create(variable.name, variable.dtype, variable.shape, kind).status());
    }
  }
  return OkStatus();
}

Status Memory::AddSlots(const StepModel& model) {
  for (Place& place : places_) {
    for (const size_t v : TrainableOf(model)) {
      ASSIGN_OR_RETURN(variables::Variable * variable, place.store->Get(model.variables[v].name));
      RETURN_IF_ERROR(exec::FindOrCreateSlots(model.optimizer, *variable, *place.store).status());
    }
  }
  return OkStatus();
}

Status Memory::Load(const StepModel& model, const state::TrainingState& training,
                    const state::Snapshot& values) {
  for (Place& place : places_) {
    for (size_t v = 0; v < model.variables.size(); ++v) {
      const state::VariableState& state = values.variables[v];
      RETURN_IF_ERROR(
          ForEachPart(model, training, v, *place.store, [&](variables::Variable* part, int slot) {
            if (part == nullptr) return OkStatus();
            return part->FromTensor(slot < 0 ? state.value
                                             : state.slots[static_cast<size_t>(slot)]);
          }));
    }
  }
  return OkStatus();
}

StatusOr<state::Snapshot> Memory::Take(const StepModel& model, const state::TrainingState& training,
                                       const state::Snapshot& earlier, int64_t step) const {
  state::Snapshot snapshot = earlier;
  snapshot.global_step = step;
  for (size_t v = 0; v < model.variables.size(); ++v) {
    state::VariableState& state = snapshot.variables[v];
    RETURN_IF_ERROR(ForEachPart(
        model, training, v, *places_[0].store, [&](variables::Variable* part, int slot) {
          if (part == nullptr) return OkStatus();
          (slot < 0 ? state.value : state.slots[static_cast<size_t>(slot)]) = part->ToTensor();
          return OkStatus();
        }));
  }
  return snapshot;
}

}  // namespace tfjob::steps
