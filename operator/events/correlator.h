// Decides what happens to an event, which may repeat an earlier event, may be one of many similar
// events, or may exceed the rate limit of its object and reason. Pure except for its memory: uses
// no clock and makes no calls. recorder.h lists the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "operator/events/lru.h"
#include "operator/objects/event.h"
#include "runtime/base/clock.h"

namespace tfjob::events {

struct CorrelatorOptions {
  size_t max_similar = 10;  // from this many different messages on, events are combined
  Duration similar_within{600s};
  int burst = 25;
  Duration refill{300s};  // after each such interval, one more call is allowed
  size_t memory = 4096;   // per kind: events, groups of similar ones, objects
};

// An event as the server should store it.
struct Observation {
  std::string name;  // of the Event object
  objects::Event event;
  Time first;
  Time last;
  int64_t count = 1;  // 1: the server does not have it yet
};

enum class Verdict { kSend, kFiltered, kRepeated };

// Not thread-safe.
class Correlator {
 public:
  explicit Correlator(const CorrelatorOptions& options);

  // Processes an event. `now` is the event's time; `elapsed` is a monotonic time. Returns kSend if
  // the server should store `result`, kFiltered if the event exceeds the limit and is only counted,
  // and kRepeated if its name is the same as last time. If `name` is empty, it is derived from the
  // object and the time.
  Verdict Observe(std::string name, const objects::Event& event, Time now, Duration elapsed,
                  Observation& result);

 private:
  struct Seen {
    std::string name;   // of the Event object
    std::string cause;  // the name given for the last one
    Time first;
    int64_t count = 0;
  };
  struct Group {
    std::set<uint64_t> messages;  // their hashes, at most max_similar
    Duration last{0};
  };
  struct Bucket {
    double tokens = -1;  // -1: new, full
    Duration filled{0};
  };

  bool Combine(const std::string& group_key, const objects::Event& event, Duration elapsed);
  bool TakeToken(const std::string& key, Duration elapsed);

  const CorrelatorOptions options_;
  Lru<Seen> seen_;
  Lru<Group> groups_;
  Lru<Bucket> buckets_;
};

}  // namespace tfjob::events
