// Defines the keys of the `strategy` section.
#include "runtime/config/bind.h"

namespace tfjob::config {
namespace {

using C = TrainingConfig;
using S = StrategyConfig;

void AddName(std::vector<Key>& keys) {
  keys.push_back({.path = "strategy.name",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::kind>(),
                  .doc = "How the tasks and devices of the job train together: "
                         "[Strategies](#strategies). `auto`: parameter_server if the cluster has "
                         "a ps, multi_worker_mirrored if several tasks train without one, and "
                         "otherwise one_device. `strategy: NAME` is the short form.",
                  .choices = {std::begin(kStrategyNames), std::end(kStrategyNames)}});
}

void AddDeviceKeys(std::vector<Key>& keys) {
  keys.push_back({.path = "strategy.devices",
                  .type = KeyType::kInteger,
                  .binding = Bind<&C::strategy, &S::devices>(),
                  .doc = "Number of devices of a task. On CPUs, a device is a group of threads: "
                         "the task's threads are split between the devices, and each device has "
                         "at least one.",
                  .minimum = 1,
                  .maximum = kMostDevices,
                  .when_values = {"mirrored", "multi_worker_mirrored", "central_storage"}});
  keys.push_back({.path = "strategy.bytes_per_pack",
                  .type = KeyType::kBytes,
                  .binding = Bind<&C::strategy, &S::bytes_per_pack>(),
                  .doc =
                      "Size of the packs in which gradients are exchanged, at most 25Mi. A larger "
                      "gradient is a pack of its own. The size does not change the results, unless "
                      "`implementation` is `ring`. "
                      "0: automatic.",
                  .minimum = 0,
                  .maximum = 25 << 20,
                  .when_values = {"mirrored", "multi_worker_mirrored"},
                  .unset_doc = "automatic"});
}

void AddExchangeKeys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "strategy.timeout_seconds",
       .type = KeyType::kNumber,
       .binding = Bind<&C::strategy, &S::timeout_seconds>(),
       .doc = "Time for which a task waits for another task in an exchange. After that, it fails "
              "with an error that names the other task. The time that the other task spends in an "
              "announced phase, such as saving, does not count. 0: no limit.",
       .minimum = 0,
       .maximum = 31536000,
       .when_values = {"multi_worker_mirrored"},
       .unset_doc = "no limit"});
  keys.push_back({.path = "strategy.implementation",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::implementation>(),
                  .doc = "How gradients are added. `auto`: in the order of a tree, which depends "
                         "only on the number of tasks; the algorithm is chosen by size. But if "
                         "each task has a GPU of its own and the same version of NCCL, `auto` is "
                         "`nccl`, unless `strategy.transport` or `strategy.compression` is set. "
                         "`ring`: "
                         "over TCP, each task adds its values to the sums from the previous task "
                         "and sends them to the next one ([guide](guides/all-reduce.md#ring)). All "
                         "tasks stay bit-identical, but the results also depend on the sizes of "
                         "the packs. `nccl`: by NVIDIA's NCCL between the memories of the tasks' "
                         "GPUs ([guide](guides/all-reduce.md#nccl)). All tasks stay bit-identical, "
                         "but the results depend on the version of NCCL and on the machines. If a "
                         "task has no GPU of its own, this is an error.",
                  .choices = {std::begin(kImplementationNames), std::end(kImplementationNames)},
                  .when_values = {"multi_worker_mirrored"}});
  keys.push_back({.path = "strategy.transport",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::transport>(),
                  .doc = "How the tasks exchange gradients. `auto`: through shared memory between "
                         "tasks that run on one machine, in one network namespace and as the same "
                         "user, and otherwise over TCP. `tcp` and `shared_memory` force one of the "
                         "two; if the tasks cannot share memory, `shared_memory` is an error. The "
                         "transport does not change the results.",
                  .choices = {std::begin(kTransportNames), std::end(kTransportNames)},
                  .when_values = {"multi_worker_mirrored"}});
  keys.push_back({.path = "strategy.compression",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::compression>(),
                  .doc = "The type in which the tasks send gradients to each other. `bfloat16` "
                         "halves the bytes, as Horovod's `Compression.fp16` and DDP's "
                         "`bf16_compress_hook` do: each task rounds its part of the mean to "
                         "bfloat16, the parts are added in float32, and the mean is rounded to "
                         "bfloat16 once. Float64 gradients, the rows of tables, moving statistics, "
                         "losses and metrics are sent as they are. The key changes the results "
                         "slightly, but all tasks stay bit-identical.",
                  .choices = {std::begin(kCompressionNames), std::end(kCompressionNames)},
                  .when_values = {"multi_worker_mirrored"}});
}

void AddFailureKeys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "strategy.on_failure",
       .type = KeyType::kChoice,
       .binding = Bind<&C::strategy, &S::on_failure>(),
       .doc = "What the other tasks do if a task is lost or asked to exit. `wait`: they wait until "
              "its replacement has joined, and lose no step. `shrink`: if they are a majority of "
              "the group, they continue without it, and divide the examples of each step among "
              "themselves until its replacement has joined. If the chief is lost, another task "
              "saves checkpoints until the chief returns, so all tasks must share `model_dir`. The "
              "results equal those of an undisturbed run only up to rounding. `restart`: as with "
              "`wait`, but if a task was lost, all tasks roll back to the last checkpoint.",
       .choices = {std::begin(kOnFailureNames), std::end(kOnFailureNames)},
       .when_values = {"multi_worker_mirrored"}});
}

void AddElasticKeys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "strategy.min_replicas",
       .type = KeyType::kInteger,
       .binding = Bind<&C::strategy, &S::min_replicas>(),
       .doc = "Minimum number of tasks that train, including the chief. With fewer tasks, the "
              "group waits. If this number is below `max_replicas`, tasks may join and leave while "
              "the job trains ([guide](guides/all-reduce.md#elastic)); this needs "
              "`global_batch_size` and `strategy.on_failure: shrink`.",
       .minimum = 1,
       .maximum = kMostReplicas,
       .when_values = {"multi_worker_mirrored"},
       .unset_doc = "the tasks in `TF_CONFIG`"});
  keys.push_back({.path = "strategy.max_replicas",
                  .type = KeyType::kInteger,
                  .binding = Bind<&C::strategy, &S::max_replicas>(),
                  .doc = "Maximum number of tasks that train, including the chief. Additional "
                         "tasks wait if the group is elastic, and are refused otherwise.",
                  .minimum = 1,
                  .maximum = kMostReplicas,
                  .when_values = {"multi_worker_mirrored"},
                  .unset_doc = "the tasks in `TF_CONFIG`"});
}

// Adds the keys of strategies that reduce gradients over several devices.
void AddReductionKeys(std::vector<Key>& keys) {
  const size_t first = keys.size();
  AddDeviceKeys(keys);
  AddExchangeKeys(keys);
  AddFailureKeys(keys);
  AddElasticKeys(keys);
  for (size_t i = first; i < keys.size(); ++i) keys[i].when_key = "strategy.name";
}

void AddServerKeys(std::vector<Key>& keys) {
  keys.push_back({.path = "strategy.mode",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::mode>(),
                  .doc = "`async`: gradients are applied as they arrive; `sync`: they are "
                         "averaged, as in TensorFlow's SyncReplicasOptimizer.",
                  .choices = {"async", "sync"}});
  keys.push_back(
      {.path = "strategy.replicas_to_aggregate",
       .type = KeyType::kInteger,
       .binding = Bind<&C::strategy, &S::replicas_to_aggregate>(),
       .doc = "Number of gradients averaged in a synchronous step; 0: one from each training task. "
              "If it is below the number of training tasks, the gradients that arrive last are "
              "dropped; if it is above, some tasks compute several batches per step.",
       .minimum = 0,
       .maximum = 1 << 20});
  keys.push_back({.path = "strategy.placement",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::strategy, &S::placement>(),
                  .doc = "How variables are assigned to parameter servers. `round_robin`: in turn; "
                         "`balanced`: so that each server holds about the same number of bytes.",
                  .choices = {"round_robin", "balanced"}});
  keys.push_back(
      {.path = "strategy.shard_bytes",
       .type = KeyType::kBytes,
       .binding = Bind<&C::strategy, &S::shard_bytes>(),
       .doc = "Variables larger than this are split across the servers. 0: no variable is split.",
       .minimum = 0});
  keys.push_back({.path = "strategy.table_bytes",
                  .type = KeyType::kBytes,
                  .binding = Bind<&C::strategy, &S::table_bytes>(),
                  .doc = "Tables (`Embedding`) larger than this stay on the parameter servers: "
                         "tasks read the rows of each batch. 0: tasks read every table whole.",
                  .minimum = 0});
}

void AddStaleness(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "strategy.max_staleness",
       .type = KeyType::kInteger,
       .binding = Bind<&C::strategy, &S::max_staleness>(),
       .doc =
           "In asynchronous mode: before a task sends a gradient, it asks how many updates other "
           "tasks have made since it read the values. If there were more updates than this, it "
           "drops the gradient and continues with fresh values. The dropped batch counts as drawn.",
       .minimum = 0,
       .when_key = "strategy.mode",
       .when_values = {"async"},
       .unset_doc = "unlimited"});
}

void AddLeaseKeys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "strategy.step_lease_factor",
       .type = KeyType::kNumber,
       .binding = Bind<&C::strategy, &S::step_lease_factor>(),
       .doc = "In synchronous mode, the other tasks stop waiting for a worker that responds but "
              "does not contribute after this multiple of the median step time, and compute "
              "another batch in its place. The worker's late gradient is dropped; after that, the "
              "worker takes part again. 0: the other tasks wait without limit.",
       .minimum = 0,
       .maximum = 1e6});
  keys.push_back({.path = "strategy.step_lease_secs",
                  .type = KeyType::kNumber,
                  .binding = Bind<&C::strategy, &S::step_lease_secs>(),
                  .doc = "The other tasks wait at least this long for such a worker, however short "
                         "the steps are.",
                  .minimum = 0,
                  .maximum = 1e9});
  keys.push_back(
      {.path = "strategy.start_timeout_secs",
       .type = KeyType::kNumber,
       .binding = Bind<&C::strategy, &S::start_timeout_secs>(),
       .doc = "In synchronous mode: the first step waits until all training tasks have started, "
              "but not longer than this many seconds after the variables have received their "
              "initial values. Then training begins without the missing tasks.",
       .minimum = 0,
       .maximum = 31536000});
}

}  // namespace

void AddStrategyKeys(std::vector<Key>& keys) {
  AddName(keys);
  AddReductionKeys(keys);
  const size_t first = keys.size();
  AddServerKeys(keys);
  AddLeaseKeys(keys);
  for (size_t i = first; i < keys.size(); ++i) {
    keys[i].when_key = "strategy.name";
    keys[i].when_values = {"auto", "parameter_server"};
  }
  AddStaleness(keys);
}

}  // namespace tfjob::config
