#include "runtime/api/loops/task_group.h"

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/api/fit/job_role.h"
#include "runtime/base/log.h"
#include "runtime/base/version.h"
#include "runtime/strategy/select.h"

namespace tfjob::api {
namespace {

constexpr Logger kLoopLog("loops");
constexpr Duration kOthersLearn{1s};  // see LetOthersLearn

// Returns the settings that must be equal in all tasks, one per line. A task that calls Fit has
// other lines, so the first one names the difference.
std::string AgreementOf(const config::StrategyConfig& config) {
  return StrCat("program: ", kVersion, "\ntraining: a custom training loop\ntransport: ",
                config::kTransportNames[static_cast<size_t>(config.transport)], "\ncompression: ",
                config::kCompressionNames[static_cast<size_t>(config.compression)],
                "\nimplementation: ",
                config::kImplementationNames[static_cast<size_t>(config.implementation)],
                "\nbytes_per_pack: ", config.bytes_per_pack,
                "\ntimeout: ", config.timeout_seconds.value_or(0), " s\n");
}

constexpr size_t kHeader = 6;
// The numbers of a snapshot: the step, whether the loss has a scale, the scale, and its good steps;
// the learning rate that a run has set (-1 for none), and its step.
std::array<double, kHeader> HeaderOf(const state::Snapshot& values) {
  const state::LossScale scale = values.loss_scale.value_or(state::LossScale());
  const state::LearningRate rate = values.learning_rate.value_or(state::LearningRate{.rate = -1});
  return {static_cast<double>(values.global_step),
          values.loss_scale ? 1.0 : 0.0,
          scale.scale,
          static_cast<double>(scale.good_steps),
          rate.rate,
          static_cast<double>(rate.step)};
}

tfjob::Status SetLearningRate(double rate, double step, state::Snapshot& values) {
  values.learning_rate.reset();
  if (rate == -1) return OkStatus();
  const bool counts = step >= 0 && step <= 0x1p53;
  const state::LearningRate set{.rate = rate, .step = counts ? static_cast<int64_t>(step) : -1};
  if (!set.IsValid()) return DataLoss("the learning rate of rank 0 is not valid");
  values.learning_rate = set;
  return OkStatus();
}

tfjob::Status SetHeader(const std::array<double, kHeader>& header, state::Snapshot& values) {
  if (!(header[0] >= 0 && header[0] <= 0x1p53))
    return DataLoss("the number of updates of rank 0: expected 0 to 2^53, got ", header[0]);
  values.global_step = static_cast<int64_t>(header[0]);
  RETURN_IF_ERROR(SetLearningRate(header[4], header[5], values));
  values.loss_scale.reset();
  if (header[1] == 0) return OkStatus();
  const bool counts = header[3] >= 0 && header[3] < state::kGoodStepsToGrow;
  const state::LossScale scale{.scale = header[2],
                               .good_steps = counts ? static_cast<int64_t>(header[3]) : -1};
  if (!scale.IsValid()) return DataLoss("the scale of the loss of rank 0 is not valid");
  values.loss_scale = scale;
  return OkStatus();
}

}  // namespace

StatusOr<int> TasksOfLoops(const StrategyData& strategy) {
  const cluster::TfConfig& tf_config = strategy.tf_config;
  if (cluster::RoleOf(tf_config) == cluster::Role::kEvaluator) {
    return Unimplemented("an evaluator takes no steps; in this task, use LoadCheckpoint and ",
                         "Evaluate instead of Step, TrainOnBatch, TestOnBatch and functions");
  }
  if (HasServers(tf_config)) {
    return Unimplemented("Step, TrainOnBatch, TestOnBatch and functions do not support parameter ",
                         "servers; remove the ps tasks, so that the job trains with all-reduce, ",
                         "or use Fit");
  }
  ASSIGN_OR_RETURN(const config::StrategyKind kind,
                   strategy::Select(strategy.config.kind, tf_config));
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (kind != config::StrategyKind::kMultiWorkerMirrored || tasks <= 1) return 1;
  if (strategy.config.implementation == config::CollectiveImplementation::kNccl) {
    return Unimplemented("implementation: the tasks of a custom training loop exchange values ",
                         "through the memory of the host, and cannot use nccl; use auto, the ",
                         "default, or use Fit");
  }
  if (strategy.config.on_failure != config::OnFailure::kWait || strategy.config.IsElastic()) {
    return Unimplemented("on_failure: if a task is lost, the calls of a custom training loop fail ",
                         "in all other tasks; use wait, the default, and start all tasks again, ",
                         "or use Fit");
  }
  return tasks;
}

TaskGroup::TaskGroup(train::TaskOptions options)
    : context_(std::move(options), NoStop(), RealClock()) {}

StatusOr<std::shared_ptr<TaskGroup>> TaskGroup::Create(const StrategyData& strategy,
                                                       config::TrainingConfig config) {
  RETURN_IF_ERROR(BeginRun(strategy.tf_config).status());
  config.threads = 1;  // the task group computes nothing
  std::shared_ptr<TaskGroup> group(new TaskGroup(TaskOptionsOf(strategy, std::move(config))));
  RETURN_IF_ERROR(group->Join());
  return group;
}

tfjob::Status TaskGroup::Join() {
  ASSIGN_OR_RETURN(endpoint_, strategy::MakeEndpoint({.config = context_.config().strategy,
                                                      .tf_config = context_.tf_config(),
                                                      .identity = context_.identity(),
                                                      .credentials = context_.credentials()}));
  ASSIGN_OR_RETURN(server_, context_.Serve({{collectives::Endpoint::kService, endpoint_.get()}},
                                           endpoint_.get()));
  group_ =
      endpoint_->MakeGroup({.on_event = [this](const state::PeerEvent& event) { OnEvent(event); }});
  ASSIGN_OR_RETURN(collectives::Generation generation,
                   group_->Join({.agreement = AgreementOf(context_.config().strategy)}));
  const int rank = cluster::TrainingRank(context_.tf_config(), context_.tf_config().task);
  const int tasks = cluster::TrainingTaskCount(context_.tf_config());
  if (generation.rank != rank || static_cast<int>(generation.members.size()) != tasks) {
    return Internal("expected to be task ", rank, " of ", tasks, ", got task ", generation.rank,
                    " of ", generation.members.size());
  }
  group_->StateIsShared();
  context_.board().Update([](progress::Progress& shown) { shown.waiting_for.clear(); });
  std::vector<std::string> names;
  for (const collectives::Member& member : generation.members) names.push_back(member.task);
  MutexLock lock(mutex_);
  steps_ = std::make_unique<steps::StepGroup>(std::move(generation.communicator), std::move(names),
                                              [this] { LetOthersLearn(); });
  return OkStatus();
}

void TaskGroup::OnEvent(const state::PeerEvent& event) {
  using Kind = state::PeerEvent::Kind;
  if (over_) return;
  // The program waits inside a call, so a user should learn which tasks it waits for.
  const bool trouble = event.kind == Kind::kLost || event.kind == Kind::kSuspected ||
                       event.kind == Kind::kStuck || event.kind == Kind::kWaiting;
  if (trouble) {
    kLoopLog.Warning(event.message, {{"peer", event.peer}});
  } else {
    kLoopLog.Info(event.message, {{"peer", event.peer}});
  }
  if (event.kind == Kind::kLost) {
    MutexLock lock(lost_mutex_);
    lost_.insert(event.peer);
    lost_changed_.NotifyAll();
  }
  if (event.kind != Kind::kWaiting) return;
  context_.board().Update([&](progress::Progress& shown) { shown.waiting_for = event.message; });
}

void TaskGroup::LetOthersLearn() {
  if (cluster::TrainingRank(context_.tf_config(), context_.tf_config().task) != 0) return;
  const auto others = static_cast<size_t>(cluster::TrainingTaskCount(context_.tf_config()) - 1);
  const auto deadline = SteadyNow() + kOthersLearn;
  MutexLock lock(lost_mutex_);
  while (lost_.size() < others && lost_changed_.WaitUntil(lost_mutex_, deadline)) {
  }
}

TaskGroup::~TaskGroup() {
  MutexLock lock(mutex_);
  if (steps_ == nullptr) return;
  const bool worked = steps_->broken().ok();
  const tfjob::Status ended = steps_->End();
  // Another error means that a task has ended at the same time, and waits no longer.
  if (worked && absl::IsFailedPrecondition(ended))
    kLoopLog.Warning("the session ends before those of other tasks", {{"error", ended}});
  over_ = true;
  steps_ = nullptr;
}

int64_t StepsToAnnounce(const CompiledData& model) {
  if (model.newest.get() != nullptr) return model.newest.get()->step();
  const bool common = model.values != nullptr && model.values == model.common.shared();
  return common ? model.values->global_step : -1;
}

tfjob::Status ShareValues(CompiledData& model, steps::StepGroup& group) {
  RETURN_IF_ERROR(model.Settle());
  const bool sends = group.rank() == 0;
  const auto broadcast = [&](std::span<std::byte> bytes) {
    return bytes.empty() ? OkStatus() : group.Check(group.communicator().Broadcast(bytes, 0));
  };
  state::Snapshot values = *model.values;
  std::array<double, kHeader> header = HeaderOf(values);
  RETURN_IF_ERROR(broadcast(std::as_writable_bytes(std::span(header))));
  for (state::VariableState& variable : values.variables) {
    std::vector<tfjob::Tensor*> parts = {&variable.value};
    for (tfjob::Tensor& slot : variable.slots) parts.push_back(&slot);
    for (tfjob::Tensor* const part : parts) {
      // A snapshot is never modified, and Tensors share their memory when they are copied.
      if (!sends) *part = tfjob::Tensor(part->dtype(), part->shape());
      RETURN_IF_ERROR(broadcast(part->bytes()));
    }
  }
  if (!sends) {
    RETURN_IF_ERROR(group.Check(SetHeader(header, values)));
    values.ledger.clear();
    model.values = std::make_shared<const state::Snapshot>(std::move(values));
  }
  model.common.set(model.values);
  return OkStatus();
}

}  // namespace tfjob::api
