// Sends the events of a job.
#pragma once

#include <functional>
#include <string>

#include "operator/control/memory.h"
#include "operator/control/tools.h"
#include "operator/objects/event.h"

namespace tfjob::control {

// Queues an event under `name`, the name that its object is to have; delivery is
// best effort. Thread-safe.
using RecordEvent = std::function<void(std::string name, objects::Event event)>;

// Sends memory.events to `record` or, if it is empty, through the client like every other call.
// Those that fail for a transient reason stay, to be sent by a later reconcile.
void SendEvents(const Tools& tools, const RecordEvent& record, Memory& memory);

}  // namespace tfjob::control
