// Two statuses of a job, one after the other → what happened between them. Counting what a server has acknowledged
// counts each thing once, over conflicts, repeated looks and restarts of the operator.
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
  int failed_pods = 0;  // that ended badly, whether or not their replica runs again

  // How long a phase took that ends here.
  std::optional<Duration> pending;  // from creation, or resumption, until Running
  std::optional<Duration> running;  // from startTime to the end, however it ended

  bool operator==(const Transitions&) const = default;
};

Transitions Compare(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                    const api::TFJobStatus& after);

}  // namespace tfjob::metrics
