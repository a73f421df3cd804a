#include "runtime/strategy/one_device_strategy.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/strategy/model_program.h"
#include "runtime/strategy/number_check.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {
namespace {

// Applies contributions that another program has computed, in place.
class Updates {
 public:
  static StatusOr<std::unique_ptr<Updates>> Compile(const ModelDefinition& definition,
                                                    variables::VariableStore& store,
                                                    const exec::Device& device) {
    ASSIGN_OR_RETURN(const model::BuiltGraph training,
                     BuildGraph(definition, model::Mode::kTrain, definition.build.batch_size,
                                /*with_updates=*/false));
    ASSIGN_OR_RETURN(const graph::Graph graph,
                     model::BuildUpdates(training, definition.state.optimizer));
    std::unique_ptr<Updates> updates(new Updates());
    ASSIGN_OR_RETURN(updates->program_, exec::Compile(graph, store, device));
    updates->feeds_.resize(updates->program_->feeds().size());
    updates->feed_of_variable_.assign(definition.variables.size(), -1);
    updates->indices_of_variable_.assign(definition.variables.size(), -1);
    for (const model::Contribution& contribution : training.contributions) {
      const auto spec = std::ranges::find(definition.variables, contribution.variable,
                                          &model::VariableSpec::name);
      const auto v = static_cast<size_t>(spec - definition.variables.begin());
      updates->feed_of_variable_[v] = updates->program_->FindFeed(contribution.fetch);
      updates->indices_of_variable_[v] = updates->program_->FindFeed(contribution.indices);
    }
    return updates;
  }

  const exec::Program& program() const { return *program_; }

  Status Run(const ModelProgram& program, int64_t step) {
    step_ = step;
    feeds_[static_cast<size_t>(program_->FindFeed(model::kStep))] = exec::Feed::Of(step_);
    for (size_t v = 0; v < feed_of_variable_.size(); ++v) {
      if (feed_of_variable_[v] < 0) continue;
      const auto feed = static_cast<size_t>(feed_of_variable_[v]);
      feeds_[feed] = {.dtype = program_->feeds()[feed].type.dtype,
                      .bytes = program.Contribution(static_cast<int>(v))};
      if (indices_of_variable_[v] < 0) continue;
      feeds_[static_cast<size_t>(indices_of_variable_[v])] =
          exec::Feed::Of(program.Indices(static_cast<int>(v)));
    }
    return program_->Run(feeds_);
  }

 private:
  Updates() = default;

  std::unique_ptr<exec::Program> program_;
  std::vector<exec::Feed> feeds_;
  std::vector<int> feed_of_variable_;     // -1: the variable does not change
  std::vector<int> indices_of_variable_;  // -1: the variable has no gradient by rows
  int64_t step_ = 0;
};

// The copies of variables that are in progress.
class Copies {
 public:
  // `written` are the variables that the next step writes, in the order of the writes.
  explicit Copies(const std::vector<variables::Variable*>& written) : written_(written) {}

  // Returns a tensor that holds the variable's value after Finisher()().
  Tensor Begin(variables::Variable& variable) {
    Tensor value(variable.dtype(), variable.shape(), Buffer::Contents::kUndefined);
    const auto place = std::ranges::find(written_, &variable) - written_.begin();
    copies_.emplace_back(place, variable.BeginCopy(value));
    return value;
  }
  // Returns a function that finishes the copies. The function begins with the variables that the
  // next step writes first.
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

// The graph of a step contains the updates, unless a batch may be skipped. In that case, a separate
// program applies the contributions once all of them are known to be finite.
class OneDevice : public Strategy {
 public:
  OneDevice(rpc::Identity self, StrategyOptions options)
      : self_(std::move(self)),
        options_(std::move(options)),
        store_(options_.device.row_stride, options_.device.runtime),
        check_(options_.on_non_finite, "", options_.definition.state.variables,
               options_.device.pool),
        programs_(options_.definition, model::Mode::kTrain, /*with_updates=*/!check_.skips(),
                  store_, options_.device) {}

  Status Create(int64_t batch_size) {
    RETURN_IF_ERROR(CreateVariables(options_.definition, store_));
    ASSIGN_OR_RETURN(training_, programs_.ForBatchSize(batch_size));
    if (check_.skips()) {
      ASSIGN_OR_RETURN(updates_, Updates::Compile(options_.definition, store_, options_.device));
    }
    // The program with the updates has created the slots.
    const state::TrainingState& training = options_.definition.state;
    for (const state::Variable& variable : training.variables) {
      std::vector<variables::Variable*> held{store_.Find(variable.name)};
      for (const optimizer::Slot& slot : state::SlotsOf(variable, training.optimizer)) {
        ASSIGN_OR_RETURN(variables::Variable * found,
                         store_.Get(StrCat(variable.name, "/", slot.suffix)));
        held.push_back(found);
      }
      held_.push_back(std::move(held));
    }
    return OkStatus();
  }

  StatusOr<StepOutcome> Start() override {
    const state::Snapshot memory = Collect(&variables::Variable::Memory);
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, options_.provide_state(&memory));
    RETURN_IF_ERROR(state::CheckFits(snapshot, options_.definition.state));
    for (size_t v = 0; v < held_.size(); ++v) {
      const state::VariableState& state = snapshot.variables[v];
      RETURN_IF_ERROR(held_[v][0]->FromTensor(state.value));
      for (size_t s = 0; s < state.slots.size(); ++s)
        RETURN_IF_ERROR(held_[v][1 + s]->FromTensor(state.slots[s]));
    }
    global_step_ = snapshot.global_step;
    drawn_ = OnlyPosition(snapshot.ledger).value_or(global_step_);
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    ASSIGN_OR_RETURN(ModelProgram * program, programs_.ForBatchSize(batch.size()));
    RETURN_IF_ERROR(program->Run(batch, global_step_, options_.definition.seed));
    ASSIGN_OR_RETURN(const bool applied, Apply(*program));
    ++drawn_;
    if (!applied) {
      return StepOutcome{.global_step = global_step_, .skipped = true, .drawn = drawn_};
    }
    program->AddTotals(totals);
    ++global_step_;
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  StatusOr<state::Snapshot> TakeSnapshot() override {
    ASSIGN_OR_RETURN(const state::SnapshotCopy copy, BeginSnapshot());
    return copy.Finish();
  }

  StatusOr<state::SnapshotCopy> BeginSnapshot() override {
    Copies copies(Written());
    state::Snapshot snapshot =
        Collect([&](variables::Variable& variable) { return copies.Begin(variable); });
    snapshot.global_step = global_step_;
    if (drawn_ != global_step_)
      snapshot.ledger = PositionRecord({self_.task_type, self_.task_index}, drawn_);
    return state::SnapshotCopy(std::move(snapshot), std::move(copies).Finisher());
  }

  Status Leave() override { return OkStatus(); }
  Status Finish() override { return OkStatus(); }
  Status Fail(const Status&) override { return OkStatus(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  // Checks the program's results, and applies them unless the program has already done so. Returns
  // false if the batch is skipped.
  StatusOr<bool> Apply(const ModelProgram& program) {
    check_.Begin();
    for (size_t v = 0; v < held_.size(); ++v) {
      const std::span<const int64_t> indices = program.Indices(static_cast<int>(v));
      if (updates_ != nullptr) {
        check_.Contribution(v, program.Contribution(static_cast<int>(v)));
      } else if (indices.empty()) {
        check_.Updated(v, *held_[v][0]);
      } else {
        check_.UpdatedRows(v, *held_[v][0], indices);
      }
    }
    ASSIGN_OR_RETURN(const bool fine, check_.Verdict(program.loss_sum(), global_step_ + 1));
    if (fine && updates_ != nullptr) RETURN_IF_ERROR(updates_->Run(program, global_step_));
    return fine;
  }

  // Returns the variables that a step writes, in the order of the writes.
  const std::vector<variables::Variable*>& Written() const {
    return updates_ != nullptr ? updates_->program().written() : training_->program().written();
  }

  // Returns a snapshot of the tensors that `tensor_of` returns for the variables and slots.
  template <typename TensorOf>
  state::Snapshot Collect(TensorOf tensor_of) {
    state::Snapshot snapshot;
    for (const std::vector<variables::Variable*>& held : held_) {
      state::VariableState state{.value = std::invoke(tensor_of, *held[0]), .slots = {}};
      for (size_t s = 1; s < held.size(); ++s)
        state.slots.push_back(std::invoke(tensor_of, *held[s]));
      snapshot.variables.push_back(std::move(state));
    }
    return snapshot;
  }

  const rpc::Identity self_;
  const StrategyOptions options_;
  variables::VariableStore store_;
  NumberCheck check_;
  ProgramCache programs_;
  ModelProgram* training_ = nullptr;  // the program for the usual batch size
  std::unique_ptr<Updates> updates_;  // null: the programs update the variables themselves
  std::vector<std::vector<variables::Variable*>> held_;  // each variable, then its slots
  int64_t global_step_ = 0;
  int64_t drawn_ = 0;  // the number of batches, including skipped ones
};

Status CheckAlone(const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks <= 1 && cluster::RoleOf(tf_config) == cluster::Role::kChief) return OkStatus();
  return Unimplemented(
      "strategy.name: one_device needs a single task that trains, but the cluster has ",
      tasks > 1 ? StrCat(tasks) : std::string("several"), ": add ps tasks, or train with one task");
}

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(rpc::Identity self, StrategyOptions options) {
  const int64_t batch_size = options.definition.build.batch_size;
  auto strategy = std::make_unique<OneDevice>(std::move(self), std::move(options));
  RETURN_IF_ERROR(strategy->Create(batch_size));
  return std::unique_ptr<Strategy>(std::move(strategy));
}

namespace {

StatusOr<std::unique_ptr<Strategy>> MakeAlone(TrainingTask task, StrategyOptions options) {
  if (task.config.max_staleness) {
    return InvalidArgument(
        "strategy.max_staleness: a task that trains alone has no stale gradients, and the cluster "
        "has no ps task; remove the key, or add ps tasks");
  }
  return MakeOneDevice(std::move(task.identity), std::move(options));
}

}  // namespace

StrategyEntry OneDeviceEntry() {
  return {.kind = config::StrategyKind::kOneDevice,
          .suits = [](const cluster::TfConfig&) { return true; },
          .check = CheckAlone,
          .make = MakeAlone};
}

}  // namespace tfjob::strategy
