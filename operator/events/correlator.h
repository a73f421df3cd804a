// Decides whether an event is sent as it is, counted as a repetition of an earlier event, combined
// with similar events, or suppressed because its object and reason have exceeded their rate limit.
// Pure except for its memory of earlier events: uses no clock and makes no calls. recorder.h lists
// the rules.
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
  size_t max_similar = 10;        // with this many different messages, events are combined
  Duration similar_within{600s};  // after a longer pause, the messages are counted from zero
  int burst = 25;
  Duration refill{300s};  // after each such interval, one more call is allowed
  size_t memory = 4096;   // the maximum number of events, of groups and of rate limits
};

// Describes an event as the server should store it.
struct Observation {
  std::string name;  // the name of the Event object
  objects::Event event;
  Time first;
  Time last;
  int64_t count = 1;  // if 1, the server does not have the event yet
};

enum class Verdict { kSend, kFiltered, kRepeated };

// Applies the rules to one event after another. Not thread-safe.
class Correlator {
 public:
  explicit Correlator(const CorrelatorOptions& options);

  // Processes an event. `now` is the event's time; `elapsed` is a monotonic time. If `name` is
  // empty, derives the name from the event and the time. Returns:
  //  - kSend if the server should store `result`;
  //  - kFiltered if the event exceeds the rate limit and is only counted;
  //  - kRepeated if `name` is not empty and equals the name passed with the previous event that had
  //    the same object, type, reason and message.
  Verdict Observe(std::string name, const objects::Event& event, Time now, Duration elapsed,
                  Observation& result);

 private:
  struct Seen {
    std::string name;   // the name of the Event object
    std::string cause;  // the `name` passed with the last such event
    Time first;
    int64_t count = 0;
  };
  struct Group {
    std::set<uint64_t> messages;  // hashes of the messages; at most max_similar
    Duration last{0};
  };
  struct Bucket {
    double tokens = -1;  // -1: the bucket is new, and so full
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
