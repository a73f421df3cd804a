// Creates the strategy of a worker beyond strategy.max_replicas, which takes no part in the run.
// The worker waits, because the job was only scaled up too far: if the worker exited with an error,
// the job could fail although its other tasks train.
#pragma once

#include <memory>

#include "runtime/base/clock.h"
#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {

// How often the task reports why it waits.
inline constexpr Duration kReportSurplus{10s};

// Start waits until `task.stop_requested` returns true, and then returns Cancelled. Meanwhile, it
// passes events to `task.on_event`. Both functions must be set.
std::unique_ptr<Strategy> MakeSurplus(TrainingTask task, Clock& clock = RealClock());

}  // namespace tfjob::strategy
