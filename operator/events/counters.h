// Counts what happened to the events given to a recorder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfjob::events {

// Counts since the recorder was created.
struct Counters {
  int64_t recorded = 0;         // calls of Record
  int64_t filtered = 0;         // over the limit of their object: not sent
  int64_t merged = 0;           // into one that was still waiting: no call of their own
  int64_t dropped = 0;          // the queue was full, or Stop() or the end of the client came first
  int64_t dropped_routine = 0;  // the same for routine events: not included in `dropped`
  int64_t sent = 0;             // calls that the server executed, now or before
  int64_t refused = 0;          // by the server, not retried
  int64_t retried = 0;          // calls that failed and will be repeated
  int64_t expired = 0;          // abandoned after the last try
  size_t waiting = 0;           // now
};

}  // namespace tfjob::events
