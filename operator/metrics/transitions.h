// Determines what happened to a job between two consecutive statuses. Callers pass only statuses
// that the server has acknowledged, so each change is counted once, despite conflicts, repeated
// reconciles and restarts of the operator.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::metrics {

struct Transitions {
  bool created = false;    // the condition Created is new
  bool restarted = false;  // a replica was restarted, or a new attempt began
  bool succeeded = false;
  bool failed = false;
  int failed_pods = 0;  // including pods that are being replaced

  // Durations of the phases that end with this change.
  std::optional<Duration> pending;  // from creation or resumption until Running
  std::optional<Duration> running;  // from startTime to the job's end, successful or not

  bool operator==(const Transitions&) const = default;
};

Transitions Compare(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                    const api::TFJobStatus& after);

}  // namespace tfjob::metrics
