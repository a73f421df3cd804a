// How a training step is carried out over the tasks of a job: each strategy turns batches into updates of the variables,
// wherever those live. train/ drives one and never asks which.
//
// A strategy is owned by one thread; Peers may be called by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/exec/device.h"
#include "runtime/ps/events.h"
#include "runtime/ps/snapshot.h"
#include "runtime/strategy/model_definition.h"

namespace tfjob::strategy {

// Sums over examples, so that any number of batches gives an exact mean.
struct MetricTotals {
  double loss_sum = 0;
  std::vector<double> metric_sums;  // as ModelDefinition::build.metrics
  int64_t examples = 0;

  double loss() const { return examples == 0 ? 0 : loss_sum / static_cast<double>(examples); }
  double metric(size_t i) const {
    return examples == 0 ? 0 : metric_sums[i] / static_cast<double>(examples);
  }
};

struct StepOutcome {
  int64_t global_step = 0;  // after the step
  int64_t staleness = 0;  // updates by others between reading the values and applying this gradient
  bool dropped = false;   // the gradient came too late for its synchronous step
  bool rolled_back = false;  // the variables went back to a checkpoint meanwhile
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Waits until the variables hold values, filling them when this task is the chief and they do not. Returns the global
  // step to go on from.
  virtual StatusOr<int64_t> Start() = 0;
  // Forward, backward, update. Adds the batch's loss and metrics, as they were before the update, to `totals`.
  virtual StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) = 0;
  // A copy of variables, slots and step. Between steps.
  virtual StatusOr<ps::Snapshot> TakeSnapshot() = 0;
  // This task makes no further step; others may.
  virtual Status Leave() = 0;
  // The job is over: the chief's last call. Others' tasks that only serve end by it.
  virtual Status Finish() = 0;
  virtual std::vector<ps::PeerState> Peers() = 0;
};

struct StrategyOptions {
  ModelDefinition definition;
  exec::Device device;
  int64_t replica = 0;  // this task's rank among those that train: keeps dropout apart
  // What the chief fills empty variables with: the last checkpoint, or initial values.
  std::function<StatusOr<ps::Snapshot>()> provide_state;
};

// All in this process.
StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(StrategyOptions options);

}  // namespace tfjob::strategy
