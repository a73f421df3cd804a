// Sends the events of a job.
#pragma once

#include "operator/control/settings.h"

namespace tfjob::control {

struct Memory;
struct Tools;

// Sends memory.events to `record` or, if it is empty, through the client like every other call.
// Those that fail for a transient reason stay, to be sent by a later reconcile.
void SendEvents(const Tools& tools, const RecordEvent& record, Memory& memory);

}  // namespace tfjob::control
