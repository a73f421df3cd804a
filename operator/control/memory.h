// Holds what the loop keeps about one job between two reconciles, in memory only: losing it when
// the operator restarts does no harm. Belongs to the worker that holds the job's key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/plan/named_event.h"
#include "operator/policy/facts/history.h"
#include "runtime/base/clock.h"

namespace tfjob::control {

struct Memory {
  std::string uid;  // of the job; another job of the same name starts with a new memory
  policy::History history;
  std::vector<plan::NamedEvent> events;  // to be sent
  bool reconcile_again = false;          // the last reconcile left work: reconcile again at once

  // The pod group was created: if it is gone, the job may be gone too, and its watch behind.
  bool had_group = false;

  // Since when (Clock::Monotonic) the status has been out of date in its counts alone.
  std::optional<Duration> counts_behind;

  // A status write whose answer was lost: if it turns out to have been carried out, its
  // events are due.
  struct Unanswered {
    std::string status;  // as JSON
    std::vector<plan::NamedEvent> events;
    api::TFJobStatus before;
    api::TFJobStatus after;
  };
  std::optional<Unanswered> unanswered;
};

}  // namespace tfjob::control
