// Creates the strategy that keeps a copy of the variables in every training task and averages the
// gradients of all tasks in every step (all-reduce). After each step, the states of all tasks are
// bit-identical.
//
// If a task of the group is lost, the others keep their state and join the next generation of the
// group. The newest state is sent to the tasks that lack it, and the step in progress is repeated
// unless at least one task has applied it. A replacement can therefore join without losing a step,
// and even the chief can be replaced while at least one other task is alive. If the group may
// shrink, it continues without lost tasks, and rank 0 has the chief's duties. If the group goes
// back (goes_back), all tasks drop their states after a loss, and rank 0 provides the state again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/collectives/membership/group.h"
#include "runtime/config/training_config.h"
#include "runtime/state/peer.h"
#include "runtime/state/task_id.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

struct MultiWorkerMirroredOptions {
  // definition.build.batch_size is the number of this task's examples in a usual step. Only the
  // leader calls provide_state.
  StrategyOptions common;
  std::unique_ptr<collectives::Group> group;
  state::TaskId leader;        // the group's leader
  bool leads = false;          // this task is the leader; not used if the group shrinks
  bool shrinks = false;        // the group continues without lost tasks; rank 0 leads
  bool begins_again = false;   // see collectives::Joining
  bool goes_back = false;      // after a loss, the group continues from the last checkpoint
  int64_t global_batch = 0;    // examples of all tasks in a usual step
  int64_t bytes_per_pack = 0;  // see PlanBuckets
  // The transport that the group's communicators use. Must be equal in all tasks.
  config::CollectiveTransport transport = config::CollectiveTransport::kAuto;
  // How the communicators add. Must be equal in all tasks.
  config::CollectiveImplementation implementation = config::CollectiveImplementation::kAuto;
  // The step after which the tasks stop; 0 if unknown. If the step is known, the tasks wait for
  // each other after it. Otherwise, a task that finishes this step first could leave, and another
  // task would have to abandon the step.
  int64_t last_step = 0;
  // Further settings that must be equal in all tasks; see TrainingTask::agreement.
  std::string agreement;
  // See TrainingTask::claim_run. Called only if the group shrinks.
  std::function<StatusOr<RunClaim>()> claim_run;
  state::PeerEventSink on_event;
};

StatusOr<std::unique_ptr<Strategy>> MakeMultiWorkerMirrored(MultiWorkerMirroredOptions options);

}  // namespace tfjob::strategy
