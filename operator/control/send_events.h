// Sends the events of a job.
#pragma once

#include "operator/control/settings.h"

namespace tfjob::control {

struct Memory;
struct Dependencies;

// Passes memory.events to `record` or, if `record` is empty, sends them through the client like
// other calls. Events that cannot be sent for a transient reason are kept for a later reconcile.
void SendEvents(const Dependencies& dependencies, const RecordEvent& record, Memory& memory);

}  // namespace tfjob::control
