// Defines an event on a job together with the name of its object. Plans contain such events, and so
// do the reports of what became of a plan.
#pragma once

#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"

namespace tfjob::plan {

struct NamedEvent {
  std::string name;
  objects::Event event;
  std::string cause;  // to remember in History::reported if standing
  bool standing = false;
};

// Returns an event on `job`, named after `cause` (policy::EventName).
NamedEvent MakeEvent(const api::TFJob& job, objects::EventType type, std::string reason,
                     std::string message, std::string cause, bool standing = false);

}  // namespace tfjob::plan
