#include "runtime/strategy/one_device_strategy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/strategy/loss_scaling.h"
#include "runtime/strategy/model/device_totals.h"
#include "runtime/strategy/model/local_state.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/strategy/model/number_check.h"
#include "runtime/strategy/model/rate_of_run.h"
#include "runtime/strategy/model/updates.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {
namespace {

// Pads gradients by rows with rows whose index is -1, which updates ignore. Keeps its memory for
// reuse.
class RowPadding {
 public:
  explicit RowPadding(size_t variables) : padded_(variables) {}

  // Returns the contribution, padded to `rows` rows. It must not have more rows. The result is
  // valid until the next call for the same variable.
  Updates::Input Pad(size_t v, Updates::Input input, size_t rows) {
    const size_t count = input.indices.size();
    if (count == rows || count == 0) return input;
    Rows& padded = padded_[v];
    padded.indices.assign(rows, -1);
    std::ranges::copy(input.indices, padded.indices.begin());
    padded.values.assign(input.value.size() / count * rows, std::byte{0});
    std::ranges::copy(input.value, padded.values.begin());
    return {.value = padded.values, .indices = padded.indices};
  }

 private:
  struct Rows {
    std::vector<std::byte> values;
    std::vector<int64_t> indices;
  };
  std::vector<Rows> padded_;  // by variable
};

// Returns whether the graph of a step checks all numbers before it updates variables. If it does,
// gradients and variables need not be copied to the host from a device whose memory the host cannot
// access.
bool ChecksInGraph(const StrategyOptions& options) {
  return ScalesLoss(options.definition) || (RuleOf(options) != config::OnNonFinite::kContinue &&
                                            !options.device.runtime->immediate());
}

// Returns whether a step may start before the previous one has ended. If batches may be skipped,
// the number and the loss scale of a step depend on the result of the previous step.
bool RunsAhead(const StrategyOptions& options) {
  return !options.device.runtime->immediate() && RuleOf(options) != config::OnNonFinite::kSkip;
}

StrategyOptions WithChecks(StrategyOptions options) {
  options.definition.build.check_numbers = ChecksInGraph(options);
  options.definition.build.totals = RunsAhead(options);
  return options;
}

// A step that the device may still be computing.
struct StepInProgress {
  ModelProgram* program;
  exec::Ticket ticket;
};

// On a device that is not immediate, steps run ahead if possible: while the device is computing a
// step, the next one is already submitted, and the sums of the loss and the metrics stay on the
// device until TakeTotals.
//
// The graph of a step contains the updates, unless the host checks numbers and batches may be
// skipped. In that case, a separate program applies the contributions once all of them are known to
// be finite.
class OneDevice : public Strategy {
 public:
  OneDevice(rpc::Identity self, StrategyOptions options)
      : self_(std::move(self)),
        options_(WithChecks(std::move(options))),
        scales_loss_(ScalesLoss(options_.definition)),
        checks_in_graph_(ChecksInGraph(options_)),
        store_(options_.device.row_stride, options_.device.runtime),
        check_(RuleOf(options_), "", options_.definition.state.variables, options_.device.pool),
        programs_(options_.definition, model::Mode::kTrain,
                  /*with_updates=*/!check_.skips() || checks_in_graph_, store_, options_.device),
        rate_(options_.definition.state.optimizer),
        padding_(options_.definition.variables.size()) {}

  Status Create() {
    RETURN_IF_ERROR(CreateVariables(options_.definition, store_));
    RETURN_IF_ERROR(Compile());
    // The program with the updates has created the slots.
    ASSIGN_OR_RETURN(state_, LocalState::Find(options_.definition.state, store_));
    if (!options_.definition.build.totals) return OkStatus();
    in_progress_.reserve(exec::kMaxRuns);
    ASSIGN_OR_RETURN(totals_, DeviceTotals::Find(options_.definition, store_));
    return OkStatus();
  }

  StatusOr<StepOutcome> Start() override {
    Discard();
    examples_ = 0;
    if (totals_) RETURN_IF_ERROR(totals_->Clear());
    const state::Snapshot memory = state_->Memory();
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, options_.provide_state(&memory));
    RETURN_IF_ERROR(state::CheckFits(snapshot, options_.definition.state));
    RETURN_IF_ERROR(state_->Load(snapshot));
    global_step_ = snapshot.global_step;
    loss_scale_ = snapshot.loss_scale.value_or(state::LossScale());
    rate_.Take(snapshot.learning_rate);
    RETURN_IF_ERROR(UseRate());
    drawn_ = OnlyPosition(snapshot.ledger).value_or(global_step_);
    updated_ = false;
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    if (totals_) return StepAhead(batch);
    ASSIGN_OR_RETURN(ModelProgram * program, programs_.For(batch));
    program->set_loss_scale(loss_scale_.scale);
    check_.Begin();
    const Status ran = program->Run(batch, global_step_, options_.definition.seed);
    if (!ran.ok() && !(checks_in_graph_ && absl::IsAborted(ran))) return ran;
    if (!ran.ok()) check_.Refused(std::string(Message(ran)));
    ASSIGN_OR_RETURN(const bool applied, Apply(*program));
    ++drawn_;
    if (!applied) {
      return StepOutcome{.global_step = global_step_, .skipped = true, .drawn = drawn_};
    }
    program->AddTotals(totals);
    updated_ = true;
    ++global_step_;
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  Status TakeTotals(MetricTotals& totals) override {
    if (!totals_) return OkStatus();
    RETURN_IF_ERROR(AwaitAll());
    totals.examples += std::exchange(examples_, 0);
    return totals_->Take(totals);
  }

  StatusOr<state::Snapshot> TakeSnapshot() override {
    ASSIGN_OR_RETURN(const state::SnapshotCopy copy, BeginSnapshot());
    return copy.Finish();
  }

  StatusOr<state::SnapshotCopy> BeginSnapshot() override {
    RETURN_IF_ERROR(AwaitAll());
    RETURN_IF_ERROR(CheckUpdated());
    const bool follows = drawn_ == global_step_;  // the step implies the position
    state::Snapshot numbers{.global_step = global_step_, .learning_rate = rate_.get()};
    if (!follows) numbers.ledger = PositionRecord({self_.task_type, self_.task_index}, drawn_);
    if (scales_loss_) numbers.loss_scale = loss_scale_;
    return state_->BeginCopy(std::move(numbers), Written());
  }

  Status SetLearningRate(double rate) override {
    RETURN_IF_ERROR(AwaitAll());
    RETURN_IF_ERROR(rate_.Set(rate, global_step_));
    return UseRate();
  }
  std::optional<state::LearningRate> learning_rate() const override { return rate_.get(); }

  Status Leave() override { return OkStatus(); }
  Status Finish() override { return OkStatus(); }
  Status Fail(const Status&) override { return OkStatus(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  // Compiles the program for the usual batch size and, if they are separate, the updates.
  Status Compile() {
    ASSIGN_OR_RETURN(training_, programs_.ForBatchSize(options_.definition.build.batch_size));
    if (!check_.skips() || checks_in_graph_) return OkStatus();
    ASSIGN_OR_RETURN(updates_, UpdatesByRows::Compile(options_.definition, no_clipping_, store_,
                                                      options_.device));
    return OkStatus();
  }

  // The rate is a constant of the programs, so the programs that contain it are compiled again.
  Status UseRate() {
    double& compiled = options_.definition.state.optimizer.learning_rate;
    if (compiled == rate_.rate()) return OkStatus();
    compiled = rate_.rate();
    if (updates_ == nullptr) programs_.Clear();
    return Compile();
  }

  // Submits a step. Before that, waits for an earlier step only if as many as possible are in
  // progress, or if they belong to another program.
  StatusOr<StepOutcome> StepAhead(const data::Batch& batch) {
    if (!programs_.Has(batch)) RETURN_IF_ERROR(AwaitAll());
    ASSIGN_OR_RETURN(ModelProgram * program, programs_.For(batch));
    if (!in_progress_.empty() && in_progress_[0].program != program) RETURN_IF_ERROR(AwaitAll());
    if (in_progress_.size() == exec::kMaxRuns) RETURN_IF_ERROR(AwaitOldest());
    ASSIGN_OR_RETURN(const exec::Ticket ticket,
                     program->Start(batch, global_step_, options_.definition.seed));
    in_progress_.push_back({program, ticket});
    updated_ = true;
    ++global_step_;
    ++drawn_;
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  Status AwaitAll() {
    while (!in_progress_.empty()) RETURN_IF_ERROR(AwaitOldest());
    return OkStatus();
  }

  // Waits for the oldest step in progress. If it has failed, discards the steps after it, which the
  // device has not applied either.
  Status AwaitOldest() {
    StepInProgress& oldest = in_progress_.front();
    const ModelProgram& program = *oldest.program;
    const Status ran = oldest.ticket.Wait();
    if (ran.ok()) {
      examples_ += program.examples();
      in_progress_.erase(in_progress_.begin());
      return OkStatus();
    }
    const double loss = program.loss_sum();
    in_progress_.erase(in_progress_.begin());
    Discard();
    --global_step_;
    --drawn_;
    if (!checks_in_graph_ || !absl::IsAborted(ran)) return ran;
    check_.Begin();
    check_.Refused(std::string(Message(ran)));
    return check_.Verdict(loss, global_step_ + 1).status();
  }

  // Waits for the steps in progress, and forgets them.
  void Discard() {
    for (StepInProgress& step : in_progress_) static_cast<void>(step.ticket.Wait());
    global_step_ -= std::ssize(in_progress_);
    drawn_ -= std::ssize(in_progress_);
    in_progress_.clear();
  }

  // Checks the program's results, and applies them unless the program has already done so. Returns
  // false if the batch is skipped.
  StatusOr<bool> Apply(const ModelProgram& program) {
    for (size_t v = 0; v < state_->held().size() && !checks_in_graph_; ++v) {
      const variables::Variable& variable = *state_->held()[v][0];
      const std::span<const int64_t> indices = program.Indices(static_cast<int>(v));
      if (updates_ != nullptr) {
        check_.Contribution(v, program.Contribution(static_cast<int>(v)));
      } else if (indices.empty()) {
        check_.Updated(v, variable);
      } else {
        check_.UpdatedRows(v, variable, indices);
      }
    }
    ASSIGN_OR_RETURN(const bool fine, check_.Verdict(program.loss_sum(), global_step_ + 1));
    // The loss itself is not scaled, so the scale cannot be the reason if the loss is not finite.
    if (scales_loss_ && std::isfinite(program.loss_sum())) loss_scale_ = loss_scale_.After(fine);
    if (!fine || updates_ == nullptr) return fine;
    // The batch may have fewer or shorter examples than other batches.
    ASSIGN_OR_RETURN(Updates * updates,
                     updates_->For([&](int v) { return std::ssize(program.Indices(v)); }));
    RETURN_IF_ERROR(updates->Run(global_step_, [&](int v) {
      return padding_.Pad(static_cast<size_t>(v),
                          {.value = program.Contribution(v), .indices = program.Indices(v)},
                          static_cast<size_t>(updates->rows_of(v)));
    }));
    return true;
  }

  // Checks the variables after their updates, unless Apply has done so, or only gradients are
  // checked. An update may overflow although the gradient is finite. Checking after each step would
  // take too long, because the host cannot access the variables.
  Status CheckUpdated() {
    if (!checks_in_graph_ || check_.skips() || !updated_) return OkStatus();
    check_.Begin();
    for (size_t v = 0; v < state_->held().size(); ++v) check_.Updated(v, *state_->held()[v][0]);
    RETURN_IF_ERROR(check_.Verdict(/*loss=*/0, global_step_).status());
    updated_ = false;
    return OkStatus();
  }

  // Returns the variables that a step writes, in write order.
  const std::vector<variables::Variable*>& Written() const {
    return updates_ != nullptr ? updates_->written() : training_->program().written();
  }

  const rpc::Identity self_;
  StrategyOptions options_;  // with the learning rate that the programs use
  const bool scales_loss_;
  const bool checks_in_graph_;
  const optimizer::Clipping no_clipping_;  // of contributions: the training graph has clipped them
  variables::VariableStore store_;
  NumberCheck check_;
  ProgramCache programs_;
  RateOfRun rate_;
  ModelProgram* training_ = nullptr;  // the program for the usual batch size
  // Null if the programs update the variables themselves.
  std::unique_ptr<UpdatesByRows> updates_;
  RowPadding padding_;
  std::optional<LocalState> state_;  // set by Create
  // Set if steps run ahead.
  std::optional<DeviceTotals> totals_;
  std::vector<StepInProgress> in_progress_;  // oldest first
  int64_t examples_ = 0;                     // of the steps whose totals are on the device
  state::LossScale loss_scale_;              // used only if the model computes in float16
  bool updated_ = false;                     // since Start, or since the last CheckUpdated
  int64_t global_step_ = 0;
  int64_t drawn_ = 0;  // the number of batches, including skipped ones
};

Status CheckAlone(const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks <= 1 && cluster::RoleOf(tf_config) == cluster::Role::kChief) return OkStatus();
  constexpr char kOneTask[] =
      "strategy.name: one_device needs a single task that trains, but the cluster has ";
  if (tasks > 1) return InvalidArgument(kOneTask, tasks, ": use auto, or train with one task");
  return Unimplemented(kOneTask,
                       "several: add ps tasks, set strategy.name to multi_worker_mirrored "
                       "with min_replicas and max_replicas, or train with one task");
}

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(rpc::Identity self, StrategyOptions options) {
  auto strategy = std::make_unique<OneDevice>(std::move(self), std::move(options));
  RETURN_IF_ERROR(strategy->Create());
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
