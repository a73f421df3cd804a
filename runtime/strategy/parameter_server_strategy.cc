#include "runtime/strategy/parameter_server_strategy.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/ps/client/client.h"
#include "runtime/strategy/loss_scaling.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/strategy/model/number_check.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/strategies.h"
#include "runtime/trace/trace.h"

namespace tfjob::strategy {
namespace {

constexpr Logger kStrategyLog("strategy");

class ParameterServerStrategy : public Strategy {
 public:
  explicit ParameterServerStrategy(ParameterServerOptions options)
      : options_(std::move(options.common)),
        chief_(options.chief),
        store_(options_.device.row_stride, options_.device.runtime),
        check_(options_.on_non_finite, rpc::TaskName(options.identity),
               options_.definition.state.variables, options_.device.pool),
        sends_early_(!check_.skips() && !options.max_staleness),
        programs_(options_.definition, model::Mode::kTrain, /*with_updates=*/false, store_,
                  options_.device) {}

  Status Create(ps::ClientOptions client_options) {
    RETURN_IF_ERROR(CheckPolicies());
    RETURN_IF_ERROR(CreateVariables(options_.definition, store_));
    RETURN_IF_ERROR(programs_.ForBatchSize(options_.definition.build.batch_size).status());
    for (size_t v = 0; v < options_.definition.variables.size(); ++v) {
      const model::VariableSpec& spec = options_.definition.variables[v];
      const bool table = IsTable(options_.definition, v);
      variables_.push_back(table ? nullptr : store_.Find(spec.name));
      received_.push_back(table ? Tensor() : Tensor(spec.dtype, spec.shape));
      values_.push_back(table ? std::span<std::byte>() : received_.back().bytes());
    }
    ASSIGN_OR_RETURN(client_, ps::ParameterClient::Create(std::move(client_options)));
    return OkStatus();
  }

  StatusOr<StepOutcome> Start() override {
    ASSIGN_OR_RETURN(const ps::StepResult result, client_->WaitReady(values_));
    RETURN_IF_ERROR(TakeValues());
    return Outcome(result);
  }

  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    ASSIGN_OR_RETURN(ModelProgram * program, programs_.For(batch));
    RETURN_IF_ERROR(program->FindRows(batch, global_step_, options_.definition.seed));
    ASSIGN_OR_RETURN(const bool current, PullRows(*program));
    contributions_.clear();
    indices_.clear();
    for (int v = 0; v < static_cast<int>(variables_.size()); ++v) {
      contributions_.push_back(program->Contribution(v));
      indices_.push_back(program->Indices(v));
    }
    if (!current) return ReadAgain();
    if (sends_early_) RETURN_IF_ERROR(BeginStep());
    check_.Begin();
    RETURN_IF_ERROR(program->Run(batch, global_step_, options_.definition.seed, [&](int variable) {
      const auto v = static_cast<size_t>(variable);
      if (check_.Contribution(v, contributions_[v]) && sends_early_) client_->MarkReady(variable);
    }));
    ASSIGN_OR_RETURN(const bool fine, check_.Verdict(program->loss_sum(), global_step_ + 1));
    if (!fine) return Skipped();
    program->AddTotals(totals);
    if (!sends_early_) RETURN_IF_ERROR(BeginStep());
    ASSIGN_OR_RETURN(const ps::StepResult result, EndStep());
    RETURN_IF_ERROR(TakeValues());
    return Outcome(result);
  }

  std::span<const int> tables() const override { return options_.definition.tables; }
  StatusOr<state::Snapshot> TakeSnapshot() override { return client_->TakeSnapshot(); }
  Status SetLearningRate(double rate) override {
    RETURN_IF_ERROR(state::CheckMaySet(rate, options_.definition.state.optimizer));
    if (chief_) client_->SetLearningRate({.rate = rate, .step = global_step_});
    return OkStatus();
  }
  std::optional<state::LearningRate> learning_rate() const override {
    return client_->learning_rate();
  }

  Status Leave() override { return client_->Leave(); }
  Status Withdraw() override { return client_->Withdraw(); }
  Status Finish() override { return client_->Finish(); }
  Status Fail(const Status& failure) override { return client_->Fail(failure); }
  std::vector<state::PeerState> Peers() override { return client_->Peers(); }

 private:
  Status CheckPolicies() const {
    RETURN_IF_ERROR(CheckExchanges());
    if (!ScalesLoss(options_.definition)) return OkStatus();
    return Unimplemented(
        "a layer has the dtype policy mixed_float16, which needs a scale of the loss that all "
        "tasks share; parameter servers do not keep one. Use mixed_bfloat16, or strategy.name: "
        "multi_worker_mirrored without ps tasks");
  }

  Status CheckExchanges() const {
    ASSIGN_OR_RETURN(const std::string name, FirstExchange(options_.definition));
    if (name.empty()) return OkStatus();
    return Unimplemented(
        "the layer with the op ", name, " has synchronized: true, so all tasks would have to ",
        "compute each batch at the same time, but with parameter servers, each task computes at ",
        "its own pace. Set synchronized: false, or use strategy.name: multi_worker_mirrored ",
        "without ps tasks");
  }

  Status BeginStep() { return client_->BeginStep(contributions_, values_, drawn_ + 1, indices_); }

  StatusOr<ps::StepResult> EndStep() {
    const trace::Span span(trace::Category::kExchange, "wait for the parameter servers");
    return client_->EndStep();
  }

  // Reads the batch's rows from the servers. Returns false if the state that this task's values
  // belong to has been replaced.
  StatusOr<bool> PullRows(ModelProgram& program) {
    if (options_.definition.tables.empty()) return true;
    const trace::Span span(trace::Category::kExchange, "read rows of tables");
    rows_.clear();
    row_values_.clear();
    for (int v = 0; v < static_cast<int>(variables_.size()); ++v) {
      rows_.push_back(program.Rows(v));
      row_values_.push_back(program.RowValues(v));
    }
    return client_->PullRows(rows_, row_values_);
  }

  // Reads all values again, because the state that they belong to has been replaced. The batch will
  // be drawn again.
  StatusOr<StepOutcome> ReadAgain() {
    RETURN_IF_ERROR(BeginStep());
    ASSIGN_OR_RETURN(const ps::StepResult result, EndStep());
    RETURN_IF_ERROR(TakeValues());
    return Outcome(result);
  }

  // Copies the received values into the variables. The values are first received into separate
  // buffers, because they arrive while the backward pass still reads the old values.
  Status TakeValues() {
    const trace::Span span(trace::Category::kCopy, "copy received values");
    for (size_t v = 0; v < variables_.size(); ++v) {
      if (variables_[v] != nullptr) RETURN_IF_ERROR(variables_[v]->CopyIn(received_[v].bytes()));
    }
    return OkStatus();
  }

  // Skips the batch. The batch counts as drawn; the next contribution reports the new position.
  StepOutcome Skipped() {
    return {.global_step = global_step_, .skipped = true, .drawn = ++drawn_};
  }

  StepOutcome Outcome(const ps::StepResult& result) {
    global_step_ = result.global_step;
    drawn_ = result.drawn;
    return {.global_step = result.global_step,
            .staleness = result.staleness,
            .dropped = result.dropped,
            .rolled_back = result.rolled_back,
            .drawn = result.drawn};
  }

  const StrategyOptions options_;
  const bool chief_;  // whose rates the servers accept
  variables::VariableStore store_;
  NumberCheck check_;
  // True if gradients are sent while the backward pass runs. False if the batch may be skipped, or
  // a stale gradient dropped, because this is decided only after the whole pass.
  const bool sends_early_;
  ProgramCache programs_;
  std::vector<variables::Variable*> variables_;  // null for a table
  std::vector<Tensor> received_;
  std::vector<std::span<std::byte>> values_;               // views of received_
  std::vector<std::span<const std::byte>> contributions_;  // of the current step
  std::vector<std::span<const int64_t>> indices_;          // of gradients by rows
  std::vector<std::span<const int64_t>> rows_;             // table rows that the batch reads
  std::vector<std::span<std::byte>> row_values_;
  std::unique_ptr<ps::ParameterClient> client_;
  int64_t global_step_ = 0;
  int64_t drawn_ = 0;  // this task's position in its data
};

// Wraps `provide_state` for a job with these tasks. If the checkpoint comes from a job with a
// single task, the returned function splits the batches drawn by that task among the tasks.
std::function<StatusOr<state::Snapshot>()> DealingOut(
    std::function<StatusOr<state::Snapshot>(const state::Snapshot*)> provide_state,
    std::vector<state::TaskId> tasks) {
  return [provide_state = std::move(provide_state),
          tasks = std::move(tasks)]() -> StatusOr<state::Snapshot> {
    ASSIGN_OR_RETURN(state::Snapshot snapshot, provide_state(/*into=*/nullptr));
    const std::optional<int64_t> part = DealOut(tasks, snapshot.ledger);
    if (part && *part > 0) {
      kStrategyLog.Warning(
          "one task wrote the checkpoint: its batches are dealt out equally, so a few examples may "
          "be used twice, or not at all, in this epoch",
          {{"tasks", tasks.size()}, {"batches_per_task", *part}});
    }
    return snapshot;
  };
}

// Returns the addresses of the servers, by index.
std::vector<std::string> ServersOf(const cluster::TfConfig& tf_config) {
  std::vector<std::string> addresses;
  const cluster::Job* job = tf_config.cluster.job("ps");
  if (job == nullptr) return addresses;
  for (const auto& [index, address] : job->addresses) addresses.push_back(address);
  return addresses;
}

bool HasServers(const cluster::TfConfig& tf_config) {
  return !ServersOf(tf_config).empty();
}

Status CheckServers(const cluster::TfConfig& tf_config) {
  if (HasServers(tf_config)) return OkStatus();
  return InvalidArgument(
      "strategy.name: parameter_server needs ps tasks, but the cluster has none: add ps tasks, or "
      "train with one task");
}

StatusOr<std::unique_ptr<Strategy>> MakeWithServers(TrainingTask task, StrategyOptions options) {
  ParameterServerOptions made{
      .parameters = DefineParameters(task.config, options.definition.state,
                                     cluster::TrainingTaskCount(task.tf_config)),
      .servers = ServersOf(task.tf_config),
      .identity = std::move(task.identity),
      .chief = cluster::RoleOf(task.tf_config) == cluster::Role::kChief,
      .table_bytes = task.config.table_bytes,
      .max_staleness = task.config.max_staleness,
      .on_event = std::move(task.on_event),
      .stop_requested = std::move(task.stop_requested),
      .stop_patience = task.stop_patience,
      .on_late_step = std::move(task.on_late_step),
      .credentials = std::move(task.credentials)};
  // In the sparse form of TF_CONFIG, this task does not know the other tasks.
  if (!task.tf_config.cluster.sparse()) {
    for (const cluster::Task& trains : cluster::TrainingTasks(task.tf_config))
      made.parameters.tasks.push_back({trains.type, trains.index});
  }
  made.common = std::move(options);
  return MakeParameterServer(std::move(made));
}

}  // namespace

ps::Definition DefineParameters(const config::StrategyConfig& config,
                                const state::TrainingState& state, int training_tasks) {
  return {
      .state = state,
      .mode =
          config.mode == config::PsMode::kSync ? ps::Mode::kSynchronous : ps::Mode::kAsynchronous,
      .replicas_to_aggregate = static_cast<int>(config::GradientsPerStep(config, training_tasks)),
      .start_timeout = Duration(static_cast<int64_t>(config.start_timeout_secs * 1e6)),
      .placement = config.placement == config::Placement::kBalanced ? ps::Placement::kBalanced
                                                                    : ps::Placement::kRoundRobin,
      .max_shard_bytes = config.shard_bytes > 0 ? config.shard_bytes : int64_t{1} << 62};
}

// Returns the variables whose gradients consist of rows.
StatusOr<std::vector<int>> RowGradientsOf(const ModelDefinition& definition) {
  ASSIGN_OR_RETURN(const model::BuiltGraph training,
                   BuildGraph(definition, model::Mode::kTrain, definition.build.batch_size,
                              /*with_updates=*/false));
  std::vector<int> variables;
  for (const model::Contribution& contribution : training.contributions) {
    if (contribution.change != model::Change::kGradientRows) continue;
    const auto spec =
        std::ranges::find(definition.variables, contribution.variable, &model::VariableSpec::name);
    variables.push_back(static_cast<int>(spec - definition.variables.begin()));
  }
  std::ranges::sort(variables);
  return variables;
}

// Returns the tables that stay on the servers.
StatusOr<std::vector<int>> TablesOf(const ModelDefinition& definition, int64_t table_bytes) {
  if (table_bytes <= 0) return std::vector<int>();
  ASSIGN_OR_RETURN(std::vector<int> tables,
                   SeparableTables(definition, model::Mode::kTrain, table_bytes));
  std::erase_if(tables, [&](int v) {
    const state::Variable& variable = definition.state.variables[static_cast<size_t>(v)];
    return ps::RowBytes(variable) > ps::kMaxTableRowBytes;
  });
  return tables;
}

StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(ParameterServerOptions options) {
  // The servers clip the mean of a synchronous step; asynchronous contributions are clipped by the
  // graph that computes them.
  if (options.parameters.mode == ps::Mode::kSynchronous) {
    options.parameters.clipping = std::exchange(options.common.definition.build.clipping, {});
  }
  ASSIGN_OR_RETURN(options.parameters.row_gradients, RowGradientsOf(options.common.definition));
  ASSIGN_OR_RETURN(options.parameters.tables,
                   TablesOf(options.common.definition, options.table_bytes));
  options.common.definition.tables = options.parameters.tables;
  ps::ClientOptions client{
      .servers = options.servers,
      .identity = options.identity,
      .definition = options.parameters,
      .chief = options.chief,
      .provide_state = DealingOut(options.common.provide_state, options.parameters.tasks),
      .on_event = options.on_event,
      .patience = options.patience,
      .stop_requested = options.stop_requested,
      .stop_patience = options.stop_patience,
      .max_staleness = options.max_staleness,
      .on_late_step = options.on_late_step,
      .connector = options.connector,
      .credentials = options.credentials};
  options.common.definition.build.replica = options.common.replica;
  auto strategy = std::make_unique<ParameterServerStrategy>(std::move(options));
  RETURN_IF_ERROR(strategy->Create(std::move(client)));
  return std::unique_ptr<Strategy>(std::move(strategy));
}

StrategyEntry ParameterServerEntry() {
  return {.kind = config::StrategyKind::kParameterServer,
          .suits = HasServers,
          .check = CheckServers,
          .make = MakeWithServers};
}

}  // namespace tfjob::strategy
