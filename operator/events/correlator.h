// What becomes of an event: the same as one before, one of many similar ones, too many of its kind.
// Pure but for its memory: no clock, no calls. recorder.h has the rules.
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
  size_t max_similar = 10;  // from so many different messages on they are combined
  Duration similar_within{600s};
  int burst = 25;
  Duration refill{300s};  // one more call every so often
  size_t memory = 4096;   // of each kind: events, groups of similar ones, objects
};

// An event as the server is to have it.
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

  // `now` is what the event shows, `elapsed` a steady time. kSend: `result` is what the server is to
  // have. kFiltered: too many, it is only counted. kRepeated: the same name as last time.
  // `name` "": made from object and time.
  Verdict Observe(std::string name, const objects::Event& event, Time now, Duration elapsed,
                  Observation& result);

 private:
  struct Seen {
    std::string name;   // of the Event object
    std::string cause;  // the name that came with the last of them
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
