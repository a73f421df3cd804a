// Defines counters of what happened to the events that were passed to a recorder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfjob::events {

// All values except `waiting` count from the creation of the recorder.
struct Counters {
  int64_t recorded = 0;         // calls of Record
  int64_t filtered = 0;         // not sent: over the limit for their object and reason
  int64_t merged = 0;           // recorded twice in a row, or merged into an event still waiting
  int64_t dropped = 0;          // not sent: the queue was full, or the recorder or client stopped
  int64_t dropped_routine = 0;  // dropped routine events, which `dropped` does not include
  int64_t sent = 0;             // stored by the server, whether now or by an earlier call
  int64_t refused = 0;          // refused by the server, not retried
  int64_t retried = 0;          // failed calls that were scheduled again
  int64_t expired = 0;          // abandoned after the last attempt
  size_t waiting = 0;           // waiting or being sent now
};

}  // namespace tfjob::events
