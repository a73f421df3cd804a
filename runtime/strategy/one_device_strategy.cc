#include "runtime/strategy/one_device_strategy.h"

#include <utility>

#include "runtime/strategy/model_program.h"
#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {
namespace {

class OneDevice : public Strategy {
 public:
  explicit OneDevice(StrategyOptions options)
      : options_(std::move(options)),
        store_(options_.device.row_stride),
        programs_(options_.definition, model::Mode::kTrain, /*with_updates=*/true, store_,
                  options_.device) {}

  Status Create(int64_t batch_size) {
    RETURN_IF_ERROR(CreateVariables(options_.definition, store_));
    return programs_.ForBatchSize(batch_size).status();  // also creates the slots
  }

  StatusOr<StepOutcome> Start() override {
    ASSIGN_OR_RETURN(state::Snapshot snapshot, options_.provide_state());
    const state::TrainingState& training = options_.definition.state;
    RETURN_IF_ERROR(state::CheckFits(snapshot, training));
    RETURN_IF_ERROR(LoadValues(options_.definition, snapshot, store_));
    const std::vector<optimizer::Slot> slots = optimizer::Slots(training.optimizer);
    for (size_t v = 0; v < training.variables.size(); ++v) {
      for (size_t s = 0; s < slots.size(); ++s) {
        ASSIGN_OR_RETURN(variables::Variable * slot, SlotOf(training.variables[v], slots[s]));
        RETURN_IF_ERROR(slot->FromTensor(snapshot.variables[v].slots[s]));
      }
    }
    global_step_ = snapshot.global_step;
    return StepOutcome{.global_step = global_step_, .drawn = global_step_};
  }

  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    ASSIGN_OR_RETURN(ModelProgram * program, programs_.ForBatchSize(batch.size()));
    RETURN_IF_ERROR(program->Run(batch, global_step_, options_.definition.seed));
    program->AddTotals(totals);
    ++global_step_;
    return StepOutcome{.global_step = global_step_, .drawn = global_step_};
  }

  StatusOr<state::Snapshot> TakeSnapshot() override {
    state::Snapshot snapshot{.global_step = global_step_};
    const std::vector<optimizer::Slot> slots =
        optimizer::Slots(options_.definition.state.optimizer);
    for (const state::Variable& variable : options_.definition.state.variables) {
      state::VariableState state{.value = store_.Find(variable.name)->ToTensor()};
      for (const optimizer::Slot& slot : slots) {
        ASSIGN_OR_RETURN(variables::Variable * found, SlotOf(variable, slot));
        state.slots.push_back(found->ToTensor());
      }
      snapshot.variables.push_back(std::move(state));
    }
    return snapshot;
  }

  Status Leave() override { return OkStatus(); }
  Status Finish() override { return OkStatus(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  StatusOr<variables::Variable*> SlotOf(const state::Variable& variable,
                                        const optimizer::Slot& slot) const {
    return store_.Get(StrCat(variable.name, "/", slot.suffix));
  }

  const StrategyOptions options_;
  variables::VariableStore store_;
  ProgramCache programs_;
  int64_t global_step_ = 0;
};

Status CheckAlone(const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks <= 1 && cluster::RoleOf(tf_config) == cluster::Role::kChief) return OkStatus();
  return Unimplemented(
      "strategy one_device: the cluster has ", tasks > 1 ? StrCat(tasks) : std::string("several"),
      " tasks that train and no ps; add parameter servers, or train with one task");
}

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(StrategyOptions options) {
  const int64_t batch_size = options.definition.build.batch_size;
  auto strategy = std::make_unique<OneDevice>(std::move(options));
  RETURN_IF_ERROR(strategy->Create(batch_size));
  return std::unique_ptr<Strategy>(std::move(strategy));
}

StrategyEntry OneDeviceEntry() {
  return {.kind = config::StrategyKind::kOneDevice,
          .suits = [](const cluster::TfConfig&) { return true; },
          .check = CheckAlone,
          .make = [](TrainingTask,
                     StrategyOptions options) { return MakeOneDevice(std::move(options)); }};
}

}  // namespace tfjob::strategy
