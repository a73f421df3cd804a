#include "runtime/train/job/group_tasks.h"

#include "runtime/base/log.h"
#include "runtime/cluster/sparse_cluster.h"

namespace tfjob::train {
namespace {

constexpr Logger kGroupTasksLog("train");

bool FormsSparseGroup(const config::StrategyConfig& config, const cluster::TfConfig& tf_config) {
  const cluster::Role role = cluster::RoleOf(tf_config);
  return config.kind == config::StrategyKind::kMultiWorkerMirrored && config.max_replicas &&
         tf_config.cluster.sparse() &&
         (role == cluster::Role::kChief || role == cluster::Role::kWorker);
}

// Refuses a worker beyond a fixed number of tasks, because it could never join the group.
Status CheckFixedNumber(const config::StrategyConfig& config, const cluster::TfConfig& listed) {
  const int64_t tasks = *config.max_replicas;
  if (config.IsElastic() || cluster::TrainingRank(listed, listed.task) < tasks) return OkStatus();
  return InvalidArgument("strategy.max_replicas: expected a group to which ",
                         cluster::ToString(listed.task), " belongs, got ", tasks,
                         tasks == 1 ? " task" : " tasks", ", of which ",
                         cluster::ToString(cluster::ChiefOf(listed)),
                         " is the first; scale the job down, or increase min_replicas and "
                         "max_replicas in all tasks");
}

}  // namespace

StatusOr<cluster::TfConfig> WithGroupTasks(const config::StrategyConfig& config,
                                           const cluster::TfConfig& tf_config) {
  if (!FormsSparseGroup(config, tf_config)) return tf_config;
  ASSIGN_OR_RETURN(cluster::TfConfig listed,
                   cluster::ListTasks(tf_config, static_cast<int>(*config.max_replicas)));
  RETURN_IF_ERROR(CheckFixedNumber(config, listed));
  const char* source =
      tf_config.patterns.empty() ? "the address of this task" : cluster::kAddressPatternsVariable;
  kGroupTasksLog.Info("TF_CONFIG does not list the tasks that train; their addresses were derived",
                      {{"from", source},
                       {"leader", listed.cluster.address(cluster::ChiefOf(listed))},
                       {"min_replicas", *config.min_replicas},
                       {"max_replicas", *config.max_replicas}});
  return listed;
}

}  // namespace tfjob::train
