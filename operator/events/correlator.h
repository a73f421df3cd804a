// Decides what happens to an event: it may be the same as an earlier one, one of many similar
// ones, or one too many of its kind. Pure except for its memory: no clock, no calls. The rules
// are in recorder.h.
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
  size_t max_similar = 10;  // from this many different messages on they are combined
  Duration similar_within{600s};
  int burst = 25;
  Duration refill{300s};  // interval at which one more call is allowed
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

  // `now` is the time shown by the event, `elapsed` a steady time. kSend: `result` is the event
  // that the server should store. kFiltered: over the limit, only counted. kRepeated: the same
  // name as last time.
  // An empty `name` is derived from the object and the time.
  Verdict Observe(std::string name, const objects::Event& event, Time now, Duration elapsed,
                  Observation& result);

 private:
  struct Seen {
    std::string name;   // of the Event object
    std::string cause;  // the name given with the last one
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
