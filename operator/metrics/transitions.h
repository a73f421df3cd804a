// Determines what happened to a job between two consecutive statuses. Counting statuses that the
// server has acknowledged counts each change once, despite conflicts, repeated reconciles and
// restarts of the operator.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::metrics {

struct Transitions {
  bool created = false;    // the first status
  bool restarted = false;  // replicas, or an attempt
  bool succeeded = false;
  bool failed = false;
  int failed_pods = 0;  // pods that failed, whether or not their replica runs again

  // Duration of a phase that ends here.
  std::optional<Duration> pending;  // from creation, or resumption, until Running
  std::optional<Duration> running;  // from startTime to the end, whatever the outcome

  bool operator==(const Transitions&) const = default;
};

Transitions Compare(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                    const api::TFJobStatus& after);

}  // namespace tfjob::metrics
