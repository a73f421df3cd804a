// Defines what the control loop remembers about a job between two reconciles. If the operator
// restarts, this memory is lost, which does no harm. Used only by the worker that is processing the
// job's key.
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
  std::string uid;  // the job's UID; another job with the same name starts with a new memory
  policy::History history;
  std::vector<plan::NamedEvent> events;  // to be sent
  bool reconcile_again = false;          // work is left over: reconcile again immediately

  // True if the pod group has been created. If the group is gone now, the job may be gone as well,
  // even if the watch has not reported this yet.
  bool had_group = false;
  bool had_network_policy = false;  // like had_group, for the NetworkPolicy

  // True if no service was missing at the last reconcile. If one is missing now, the job may be
  // gone as well.
  bool had_services = false;
  // True if the job has just been read from the server for the reconcile that is about to start.
  bool job_is_fresh = false;

  // When the status became out of date (Clock::Monotonic). Set only if nothing but the status's
  // counts is out of date.
  std::optional<Duration> counts_behind;

  // Describes a status write whose response was lost. If the server turns out to have executed the
  // write, the decision's events must still be sent.
  struct Unanswered {
    std::string status;  // as JSON
    std::vector<plan::NamedEvent> events;
    api::TFJobStatus before;
    api::TFJobStatus after;
  };
  std::optional<Unanswered> unanswered;
};

}  // namespace tfjob::control
