// Carries out one task's share of a validation that the tasks of a group have announced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/state/work_phase.h"
#include "runtime/strategy/group/announcements.h"
#include "runtime/strategy/group/validation_shares.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/validation.h"

namespace tfjob::strategy {

// Remembers the result of the latest validation, so that a task that was lost during the validation
// and has returned gets the result without another validation. Owned by one thread.
class SharedValidation {
 public:
  struct Task {
    const Validation* validation = nullptr;  // null if this task has not announced it
    int64_t drawn = 0;                       // the position of the state that is validated
    // Returns whether the communicator is still in use; see Group::IsCurrent.
    std::function<bool()> is_current;
    // Called before each batch of this task's part, and, with kNone, after the last one.
    std::function<void(state::WorkPhase)> announce;
  };
  struct Outcome {
    Status exchanged;  // the communicator's error, or OK
    Status evaluated;  // Cancelled if this task was asked to stop; otherwise OK
    // Nullopt if the validation must be repeated.
    std::optional<MetricTotals> totals;
  };

  // All ranks call Share after an exchange of announcements that demands a validation. If a task
  // has announced that it has the result, that task sends it. Otherwise, each task that has
  // announced the validation evaluates its part. `names` has the name of each rank. Returns the
  // error of the evaluation, after which this communicator is aborted on all ranks, or
  // FailedPrecondition on all ranks if the tasks validate on different examples.
  StatusOr<Outcome> Share(collectives::Communicator& communicator,
                          const Announcements& announcements, std::span<const std::string> names,
                          const Task& task);

  // Returns whether this task has the result for the state at this position.
  bool HasResult(int64_t drawn) const { return result_ && result_->drawn == drawn; }
  // Call if the state was replaced, although its position may be the same as before.
  void Forget() { result_.reset(); }

 private:
  struct Result {
    int64_t drawn = 0;
    ValidationShare share;
  };
  std::optional<Result> result_;
};

}  // namespace tfjob::strategy
