#include "runtime/strategy/select.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/strategy/one_device.h"
#include "runtime/strategy/parameter_server.h"

namespace tfjob::strategy {
namespace {

bool IsChief(const cluster::TfConfig& tf_config) {
  return cluster::RoleOf(tf_config) == cluster::Role::kChief;
}

// ---- parameter_server

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
      "strategy.name: parameter_server needs ps tasks, but the cluster has none");
}

StatusOr<std::unique_ptr<Strategy>> MakeWithServers(TrainingTask task, StrategyOptions options) {
  ParameterServerOptions made{
      .parameters = DefineParameters(task.config, options.definition.state,
                                     cluster::TrainingTaskCount(task.tf_config)),
      .servers = ServersOf(task.tf_config),
      .identity = std::move(task.identity),
      .chief = IsChief(task.tf_config),
      .on_event = std::move(task.on_event),
      .stop_requested = std::move(task.stop_requested)};
  made.common = std::move(options);
  return MakeParameterServer(std::move(made));
}

// ---- one_device

bool SuitsAlways(const cluster::TfConfig&) {
  return true;
}

Status CheckAlone(const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks <= 1 && IsChief(tf_config)) return OkStatus();
  return Unimplemented(
      "strategy one_device: the cluster has ", tasks > 1 ? StrCat(tasks) : std::string("several"),
      " tasks that train and no ps; add parameter servers, or train with one task");
}

StatusOr<std::unique_ptr<Strategy>> MakeAlone(TrainingTask, StrategyOptions options) {
  return MakeOneDevice(std::move(options));
}

// ---- all

struct Row {
  config::StrategyKind kind;
  // Returns whether `auto` may choose this strategy in the cluster. It chooses the
  // first row that suits.
  bool (*suits)(const cluster::TfConfig&);
  // Returns OK, or why this task cannot use the strategy in the cluster.
  Status (*check)(const cluster::TfConfig&);
  StatusOr<std::unique_ptr<Strategy>> (*make)(TrainingTask, StrategyOptions);
};

constexpr Row kStrategies[] = {
    {config::StrategyKind::kParameterServer, HasServers, CheckServers, MakeWithServers},
    {config::StrategyKind::kOneDevice, SuitsAlways, CheckAlone, MakeAlone},
};

StatusOr<const Row*> Find(config::StrategyKind wanted, const cluster::TfConfig& tf_config) {
  for (const Row& row : kStrategies) {
    const bool taken =
        wanted == config::StrategyKind::kAuto ? row.suits(tf_config) : row.kind == wanted;
    if (!taken) continue;
    RETURN_IF_ERROR(row.check(tf_config));
    return &row;
  }
  return Internal("there is no strategy of kind ", static_cast<int>(wanted));
}

}  // namespace

StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config) {
  ASSIGN_OR_RETURN(const Row* row, Find(wanted, tf_config));
  return row->kind;
}

StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options) {
  ASSIGN_OR_RETURN(const Row* row, Find(task.config.kind, task.tf_config));
  return row->make(std::move(task), std::move(options));
}

}  // namespace tfjob::strategy
