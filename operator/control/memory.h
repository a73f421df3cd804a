// Holds what the control loop remembers about a job between two reconciles. It is kept only in
// memory, and it does no harm if a restart of the operator loses it. Used only by the worker that
// holds the job's key.
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
  bool reconcile_again = false;          // work is left over: reconcile again immediately

  // The pod group was created. If it is now gone, the job may also be gone and the watch may not
  // have reported it yet.
  bool had_group = false;

  // The time (Clock::Monotonic) since which only the counts in the status have been out of date.
  std::optional<Duration> counts_behind;

  // A status write whose response was lost. If the server turns out to have executed it, its events
  // must be sent.
  struct Unanswered {
    std::string status;  // as JSON
    std::vector<plan::NamedEvent> events;
    api::TFJobStatus before;
    api::TFJobStatus after;
  };
  std::optional<Unanswered> unanswered;
};

}  // namespace tfjob::control
