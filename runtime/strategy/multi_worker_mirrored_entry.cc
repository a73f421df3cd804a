// Defines how tasks of a cluster become a group that trains with multi_worker_mirrored.
#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/collectives/transport/task_communicator.h"
#include "runtime/strategy/mirrored_strategy.h"
#include "runtime/strategy/multi_worker_mirrored_strategy.h"
#include "runtime/strategy/strategies.h"
#include "runtime/strategy/surplus_strategy.h"

namespace tfjob::strategy {
namespace {

constexpr Logger kEntryLog("strategy");
constexpr auto kGroupKind = config::StrategyKind::kMultiWorkerMirrored;

Status CheckGroup(const cluster::TfConfig& tf_config) {
  if (tf_config.cluster.sparse()) {
    return Unimplemented(
        "strategy.name: multi_worker_mirrored needs to know the address of the task that leads, "
        "but enableDynamicWorker hides it: remove enableDynamicWorker. To let tasks join and leave "
        "while the job trains, set strategy.min_replicas and strategy.max_replicas; or use "
        "parameter_server with ps tasks");
  }
  return CheckNoServers(kGroupKind, tf_config);
}

bool SuitsGroup(const cluster::TfConfig& tf_config) {
  return cluster::TrainingTaskCount(tf_config) > 1 && tf_config.cluster.size("ps") == 0;
}

collectives::TransportChoice ChoiceOf(config::CollectiveTransport transport) {
  switch (transport) {
    case config::CollectiveTransport::kAuto:
      return collectives::TransportChoice::kAuto;
    case config::CollectiveTransport::kTcp:
      return collectives::TransportChoice::kTcp;
    case config::CollectiveTransport::kSharedMemory:
      return collectives::TransportChoice::kSharedMemory;
  }
  return collectives::TransportChoice::kAuto;
}

bool IsSurplus(const TrainingTask& task) {
  return task.config.IsElastic() && cluster::TrainingRank(task.tf_config, task.tf_config.task) >=
                                        static_cast<int>(*task.config.max_replicas);
}

// Replaces the tasks beyond max_replicas by the workers that may join an elastic group later. The
// addresses of these workers are still unknown.
void SetElasticTasks(const config::StrategyConfig& config, collectives::EndpointOptions& options) {
  if (!config.IsElastic()) return;
  if (options.tasks.size() > static_cast<size_t>(*config.max_replicas)) {
    options.tasks.resize(static_cast<size_t>(*config.max_replicas));
  }
  options.least_tasks = static_cast<int>(*config.min_replicas);
  options.listed_tasks = static_cast<int>(options.tasks.size());
  const int chiefs = options.tasks[0].type == "worker" ? 0 : 1;
  for (auto task = options.listed_tasks; task < *config.max_replicas; ++task) {
    options.tasks.push_back({.type = "worker", .index = task - chiefs, .address = ""});
  }
}

std::unique_ptr<collectives::Endpoint> MakeEndpointOfTask(const TrainingTask& task) {
  if (IsSurplus(task)) return nullptr;
  collectives::EndpointOptions options{
      .identity = task.identity,
      .credentials = task.credentials,
      .make_communicator = [transport = ChoiceOf(task.config.transport)](
                               int rank, std::vector<wire::UniqueFd> sockets,
                               const collectives::Interrupt& interrupt) {
        return collectives::MakeTaskCommunicator({.rank = rank,
                                                  .sockets = std::move(sockets),
                                                  .transport = transport,
                                                  .interrupt = interrupt});
      }};
  for (const cluster::Task& trains : cluster::TrainingTasks(task.tf_config)) {
    options.tasks.push_back({.type = trains.type,
                             .index = trains.index,
                             .address = task.tf_config.cluster.address(trains)});
  }
  SetElasticTasks(task.config, options);
  options.exchange_timeout =
      Duration(static_cast<int64_t>(task.config.timeout_seconds.value_or(0) * 1e6));
  options.shrinks = task.config.on_failure == config::OnFailure::kShrink;
  return std::make_unique<collectives::Endpoint>(std::move(options));
}

// Compares a fixed number of training tasks with that of the cluster. With fewer tasks than
// min_replicas, an elastic group waits until tasks are added. Its surplus tasks wait, too.
Status CheckReplicas(const config::StrategyConfig& config, int tasks) {
  if (!config.max_replicas || config.IsElastic()) return OkStatus();
  if (tasks == *config.min_replicas) return OkStatus();
  const bool too_many = tasks > *config.max_replicas;
  return InvalidArgument("strategy.", too_many ? "max_replicas" : "min_replicas", ": expected ",
                         too_many ? "at least" : "at most",
                         " the number of tasks that train according to TF_CONFIG, ", tasks,
                         ", got ", too_many ? *config.max_replicas : *config.min_replicas,
                         "; the chief counts as one of these tasks");
}

Status CheckConfig(const config::StrategyConfig& config) {
  if (config.devices > 1) {
    return Unimplemented("strategy.devices: multi_worker_mirrored trains with one device per task ",
                         "in this version, got ", config.devices,
                         ": remove the key, or use mirrored with one task");
  }
  if (config.max_staleness) {
    return InvalidArgument(
        "strategy.max_staleness: no gradient is stale without parameter servers, and the cluster "
        "has no ps task; remove the key, or add ps tasks");
  }
  return OkStatus();
}

// Returns the settings that do not change the result, but must not differ between tasks.
std::string LimitsOf(const config::StrategyConfig& config) {
  return StrCat("on failure: ", config::kOnFailureNames[static_cast<size_t>(config.on_failure)],
                "\ntimeout: ", config.timeout_seconds.value_or(0), " s",
                config.max_replicas ? StrCat("\nreplicas: ", *config.min_replicas, " to ",
                                             *config.max_replicas, "\n")
                                    : "\n");
}

StatusOr<std::unique_ptr<Strategy>> MakeOfTask(TrainingTask task, StrategyOptions options) {
  RETURN_IF_ERROR(CheckConfig(task.config));
  if (IsSurplus(task)) return MakeSurplus(std::move(task));
  ENFORCE(task.endpoint != nullptr, "a task of a group has an endpoint");
  const int tasks = std::max(TasksThatTrain(task.config, task.tf_config), 1);
  RETURN_IF_ERROR(CheckReplicas(task.config, tasks));
  if (task.config.IsElastic() && task.tf_config.cluster.empty()) {
    kEntryLog.Warning(
        "no other task can join this one, because TF_CONFIG lists no tasks: add a "
        "chief to the job, or start it with two workers",
        {{"max_replicas", *task.config.max_replicas}});
  }
  const auto rank = static_cast<int>(options.replica);
  options.definition.build.batch_size = collectives::SliceOf(task.global_batch, rank, tasks).count;
  const cluster::Task leader = cluster::ChiefOf(task.tf_config);
  return MakeMultiWorkerMirrored(
      {.common = std::move(options),
       .group = task.endpoint->MakeGroup({.on_event = task.on_event,
                                          .stop_requested = std::move(task.stop_requested),
                                          .asked_to_end = std::move(task.asked_to_end),
                                          .stop_patience = task.stop_patience}),
       .leader = {leader.type, leader.index},
       .leads = cluster::RoleOf(task.tf_config) == cluster::Role::kChief,
       .shrinks = task.config.on_failure == config::OnFailure::kShrink,
       .begins_again = task.begins_again,
       .goes_back = task.config.on_failure == config::OnFailure::kRestart,
       .global_batch = task.global_batch,
       .bytes_per_pack = task.config.bytes_per_pack,
       .transport = task.config.transport,
       .last_step = task.last_step,
       .agreement = StrCat(LimitsOf(task.config), task.agreement),
       .claim_run = std::move(task.claim_run),
       .check_shares = std::move(task.check_shares),
       .on_event = std::move(task.on_event)});
}

}  // namespace

int TasksThatTrain(const config::StrategyConfig& config, const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  return config.IsElastic() ? std::min(tasks, static_cast<int>(*config.max_replicas)) : tasks;
}

StrategyEntry MultiWorkerMirroredEntry() {
  return {.kind = kGroupKind,
          .suits = SuitsGroup,
          .check = CheckGroup,
          .make = MakeOfTask,
          .make_endpoint = MakeEndpointOfTask,
          .global_batches = true};
}

}  // namespace tfjob::strategy
