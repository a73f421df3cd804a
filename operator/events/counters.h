// What became of the events that a recorder was given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfjob::events {

// Since the recorder was made.
struct Counters {
  int64_t recorded = 0;         // calls of Record
  int64_t filtered = 0;         // over the limit of their object: not sent
  int64_t merged = 0;           // into one that still waited: no call of their own
  int64_t dropped = 0;          // the queue was full, or Stop() or the end of the client came first
  int64_t dropped_routine = 0;  // the same, of those that are one of hundreds: not in `dropped`
  int64_t sent = 0;             // calls that the server carried out, or had before
  int64_t refused = 0;          // by the server, not tried again
  int64_t retried = 0;          // calls that will be made again
  int64_t expired = 0;          // given up after the last try
  size_t waiting = 0;           // now
};

}  // namespace tfjob::events
