// Defines an event on a job, together with the name of its Event object. A plan contains such
// events. The control loop adds further events, which report the results of the plan's calls.
#pragma once

#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"

namespace tfjob::plan {

struct NamedEvent {
  std::string name;
  objects::Event event;
  std::string cause;  // to be recorded in History::reported if `standing`
  bool standing = false;
};

// Returns an event on `job` whose name is derived from `cause` (policy::EventName).
NamedEvent MakeEvent(const api::TFJob& job, objects::EventType type, std::string reason,
                     std::string message, std::string cause, bool standing = false);

}  // namespace tfjob::plan
