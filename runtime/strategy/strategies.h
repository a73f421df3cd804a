// Lists the strategies. Each strategy has its own file, NAME_strategy.cc, which defines its entry.
// To add a strategy, declare its entry here and add it to AllStrategies, before the entry that is
// suited to every cluster.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/config/training_config.h"
#include "runtime/exec/device.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/identity.h"
#include "runtime/state/peer.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// The facts about a training task that a strategy may need.
struct TrainingTask {
  config::StrategyConfig config;
  cluster::TfConfig tf_config;
  rpc::Identity identity;
  rpc::Credentials credentials;
  // Returns the device that computes. Called on the strategy's thread when a group begins, to find
  // out whether the tasks can exchange with NCCL. Null: the task computes on the CPU.
  std::function<StatusOr<exec::Device>()> device;
  state::PeerEventSink on_event;
  // Called several times per second during each wait. If it returns true, the wait fails with
  // Cancelled.
  std::function<bool()> stop_requested;
  // Called on any thread, and must return at once. Returns whether this process was asked to exit.
  std::function<bool()> asked_to_end;
  // How long a step that is likely to finish may continue after a stop has been requested.
  Duration stop_patience{5s};
  // See ps::ClientOptions.
  std::function<void()> on_late_step;
  // Created by the strategy's entry; null if the entry creates none. Must outlive the strategy.
  collectives::Endpoint* endpoint = nullptr;
  // Chooses a first_term that is not less than any term of earlier runs in model_dir, and tries to
  // write this first_term to model_dir. Called only by a task that provides the state, and only if
  // another task may take over the chief's duties.
  std::function<StatusOr<RunClaim>()> claim_run;
  // Waits until this task's model_dir contains the first_term that was written by the task that
  // provided the run's first state, and returns an error if it does not. Called only by a task that
  // wants to join a run in progress, and only if another task may take over the chief's duties. The
  // other tasks train on without this task, which exits if the result is an error.
  std::function<Status(int64_t first_term)> find_claim;
  // True if a group of this job has already trained in the current attempt. Set only in the first
  // task of an elastic group.
  bool begins_again = false;
  int64_t global_batch = 0;  // examples of all tasks in a usual step
  int64_t last_step = 0;     // the step after which the tasks stop
  // The settings and properties of the data that determine which examples a step uses, one per
  // line: "NAME: VALUE". They must be equal in all tasks that share batches.
  std::string agreement;
};

// Returns the number of tasks in TF_CONFIG that may train; 0 if unknown. An elastic job may have
// been scaled up beyond strategy.max_replicas.
int TasksThatTrain(const config::StrategyConfig& config, const cluster::TfConfig& tf_config);

struct StrategyEntry {
  config::StrategyKind kind = config::StrategyKind::kAuto;
  // Returns whether `auto` may choose this strategy in the cluster.
  bool (*suits)(const cluster::TfConfig&) = nullptr;
  // Returns OK, or an error that says why this task cannot use the strategy in the cluster.
  Status (*check)(const cluster::TfConfig&) = nullptr;
  // Creates the strategy. Does not wait for any other task.
  StatusOr<std::unique_ptr<Strategy>> (*make)(TrainingTask, StrategyOptions) = nullptr;
  // Creates the endpoint that connects this task to the other tasks of its group. Reads only the
  // task's config, tf_config, identity, credentials and device, which must outlive the endpoint.
  // Null if this strategy's tasks do not form a group.
  std::unique_ptr<collectives::Endpoint> (*make_endpoint)(const TrainingTask&) = nullptr;
  // True if each task contributes a part of every batch (data::PipelineOptions::global_batch).
  bool global_batches = false;
};

StrategyEntry ParameterServerEntry();
StrategyEntry MultiWorkerMirroredEntry();
StrategyEntry MirroredEntry();
StrategyEntry CentralStorageEntry();
StrategyEntry OneDeviceEntry();

// Returns all entries. `auto` chooses the first one suited to the cluster.
inline auto AllStrategies() {
  return std::array{ParameterServerEntry(), MultiWorkerMirroredEntry(), MirroredEntry(),
                    CentralStorageEntry(), OneDeviceEntry()};
}

}  // namespace tfjob::strategy
