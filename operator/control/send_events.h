// Sends the events of a job to the server or to the recorder.
#pragma once

#include "operator/control/settings.h"

namespace tfjob::control {

struct Memory;
struct Dependencies;

// Passes memory.events to `record` or, if `record` is empty, sends them through the client like
// other calls. If sending an event fails with a transient error, the event is kept for a later
// reconcile.
void SendEvents(const Dependencies& dependencies, const RecordEvent& record, Memory& memory);

}  // namespace tfjob::control
