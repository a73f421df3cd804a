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
// How long NCCL may take for an operation without strategy.timeout_seconds.
constexpr Duration kNcclPatience{60s};
constexpr auto kGroupKind = config::StrategyKind::kMultiWorkerMirrored;

Status CheckGroup(const cluster::TfConfig& tf_config) {
  if (tf_config.cluster.sparse()) {
    return InvalidArgument(
        "strategy.max_replicas: expected a number, because TF_CONFIG does not say how many tasks "
        "train with multi_worker_mirrored (enableDynamicWorker): set strategy.min_replicas and "
        "strategy.max_replicas in the training file, or remove enableDynamicWorker");
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

collectives::SumOrder OrderOf(config::CollectiveImplementation implementation) {
  return implementation == config::CollectiveImplementation::kRing ? collectives::SumOrder::kRing
                                                                   : collectives::SumOrder::kTree;
}

// An explicit transport, and bfloat16 on the wire, are this project's own.
collectives::NcclChoice NcclOf(const config::StrategyConfig& config) {
  switch (config.implementation) {
    case config::CollectiveImplementation::kRing:
      return collectives::NcclChoice::kNever;
    case config::CollectiveImplementation::kNccl:
      return collectives::NcclChoice::kAlways;
    case config::CollectiveImplementation::kAuto:
      break;
  }
  const bool own = config.transport != config::CollectiveTransport::kAuto ||
                   config.compression != config::Compression::kNone;
  return own ? collectives::NcclChoice::kNever : collectives::NcclChoice::kIfAllCan;
}

Duration TimeoutOf(const config::StrategyConfig& config) {
  return Duration(static_cast<int64_t>(config.timeout_seconds.value_or(0) * 1e6));
}

// NCCL always has a limit, because nothing else would end an operation that hangs on the GPUs.
collectives::CommunicatorFactory FactoryOf(const TrainingTask& task) {
  const Duration timeout = TimeoutOf(task.config);
  return [transport = ChoiceOf(task.config.transport), order = OrderOf(task.config.implementation),
          nccl = NcclOf(task.config), patience = timeout > Duration(0) ? timeout : kNcclPatience,
          device = task.device](int rank, std::vector<wire::UniqueFd> sockets,
                                const collectives::Interrupt& interrupt)
             -> StatusOr<std::unique_ptr<collectives::Communicator>> {
    collectives::TaskCommunicatorOptions options{.rank = rank,
                                                 .sockets = std::move(sockets),
                                                 .transport = transport,
                                                 .order = order,
                                                 .interrupt = interrupt,
                                                 .nccl = nccl,
                                                 .nccl_patience = patience};
    if (nccl != collectives::NcclChoice::kNever && device) {
      ASSIGN_OR_RETURN(const exec::Device own, device());
      options.device = own.runtime;
    }
    return collectives::MakeTaskCommunicator(std::move(options));
  };
}

bool IsSurplus(const TrainingTask& task) {
  return task.config.IsElastic() && cluster::TrainingRank(task.tf_config, task.tf_config.task) >=
                                        static_cast<int>(*task.config.max_replicas);
}

// Replaces the tasks beyond max_replicas by the workers that may join an elastic group later. The
// addresses of these workers are still unknown. If TF_CONFIG is `open`, the tasks in it need not
// exist, so the group starts as soon as it has the least number of tasks.
void SetElasticTasks(const config::StrategyConfig& config, bool open,
                     collectives::EndpointOptions& options) {
  if (!config.IsElastic()) return;
  if (options.tasks.size() > static_cast<size_t>(*config.max_replicas)) {
    options.tasks.resize(static_cast<size_t>(*config.max_replicas));
  }
  options.least_tasks = static_cast<int>(*config.min_replicas);
  options.listed_tasks = open ? options.least_tasks : static_cast<int>(options.tasks.size());
  const int chiefs = options.tasks[0].type == "worker" ? 0 : 1;
  for (auto task = static_cast<int>(options.tasks.size()); task < *config.max_replicas; ++task) {
    options.tasks.push_back({.type = "worker", .index = task - chiefs, .address = ""});
  }
}

std::unique_ptr<collectives::Endpoint> MakeEndpointOfTask(const TrainingTask& task) {
  if (IsSurplus(task)) return nullptr;
  collectives::EndpointOptions options{.identity = task.identity,
                                       .credentials = task.credentials,
                                       .make_communicator = FactoryOf(task)};
  for (const cluster::Task& trains : cluster::TrainingTasks(task.tf_config)) {
    options.tasks.push_back({.type = trains.type,
                             .index = trains.index,
                             .address = task.tf_config.cluster.address(trains)});
  }
  SetElasticTasks(task.config, task.tf_config.open, options);
  options.exchange_timeout = TimeoutOf(task.config);
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

// Returns an error if the task must use NCCL and cannot.
Status CheckNccl(const config::StrategyConfig& config, const exec::Device& device) {
  if (NcclOf(config) != collectives::NcclChoice::kAlways) return OkStatus();
  const Status can = collectives::CanUseNccl(device.runtime);
  if (can.ok()) return can;
  return FailedPrecondition("strategy.implementation: this task computes on ", device.name,
                            " and cannot exchange with nccl: ", Message(can),
                            "; or use implementation: auto");
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
  RETURN_IF_ERROR(CheckNccl(task.config, options.device));
  if (task.config.IsElastic() && task.tf_config.cluster.empty()) {
    kEntryLog.Warning(
        "no other task can join this one, because TF_CONFIG lists no tasks: add a "
        "chief to the job, or start it with two workers",
        {{"max_replicas", *task.config.max_replicas}});
  }
  const auto rank = static_cast<int>(options.replica);
  options.definition.build.batch_size = collectives::SliceOf(task.global_batch, rank, tasks).count;
  options.compression = task.config.compression;
  const cluster::Task leader = cluster::ChiefOf(task.tf_config);
  return MakeMultiWorkerMirrored(
      {.common = std::move(options),
       .group = task.endpoint->MakeGroup({.on_event = task.on_event,
                                          .stop_requested = std::move(task.stop_requested),
                                          .asked_to_end = std::move(task.asked_to_end),
                                          .stop_patience = task.stop_patience,
                                          .find_claim = std::move(task.find_claim)}),
       .leader = {leader.type, leader.index},
       .leads = cluster::RoleOf(task.tf_config) == cluster::Role::kChief,
       .shrinks = task.config.on_failure == config::OnFailure::kShrink,
       .begins_again = task.begins_again,
       .goes_back = task.config.on_failure == config::OnFailure::kRestart,
       .global_batch = task.global_batch,
       .bytes_per_pack = task.config.bytes_per_pack,
       .transport = task.config.transport,
       .implementation = task.config.implementation,
       .last_step = task.last_step,
       .agreement = StrCat(LimitsOf(task.config), task.agreement),
       .claim_run = std::move(task.claim_run),
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
