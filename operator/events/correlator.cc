#include "operator/events/correlator.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace tfjob::events {
namespace {

constexpr char kCombined[] = "(combined from similar events): ";

// Returns a key that identifies the object and the reason. If the object has a UID, the key
// contains no other part of the reference.
std::string KeyOf(const objects::Event& event, bool with_type) {
  const objects::ObjectReference& object = event.involved;
  const std::string identity = object.uid.empty() ? StrCat(object.api_version, "/", object.kind,
                                                           "/", object.name_space, "/", object.name)
                                                  : object.uid;
  return StrCat(identity, "\n", with_type ? objects::Name(event.type) : "", "\n", event.reason);
}

std::string MakeName(const objects::Event& event, Time now) {
  const Json object = objects::ToJson(event, now);
  return JsonField(object)["metadata"]["name"].StringOr("").value_or("");
}

}  // namespace

Correlator::Correlator(const CorrelatorOptions& options)
    : options_(options), seen_(options.memory), groups_(options.memory), buckets_(options.memory) {}

Verdict Correlator::Observe(std::string name, const objects::Event& event, Time now,
                            Duration elapsed, Observation& result) {
  const std::string group_key = KeyOf(event, true);
  const std::string event_key = StrCat(group_key, "\n", event.message);
  Seen* seen = &seen_.Use(event_key);
  if (!name.empty() && seen->cause == name) return Verdict::kRepeated;
  seen->cause = name;

  result.event = event;
  const bool combined = Combine(group_key, event, elapsed);
  if (combined) {
    result.event.message = StrCat(kCombined, event.message);
    name.clear();  // the name identifies one cause, but the combined event has many
    seen = &seen_.Use(group_key);
  }
  if (seen->count++ == 0) {
    seen->name = name.empty() ? MakeName(result.event, now) : std::move(name);
    seen->first = now;
  }
  result.name = seen->name;
  result.first = seen->first;
  result.last = now;
  result.count = seen->count;
  return TakeToken(KeyOf(event, false), elapsed) ? Verdict::kSend : Verdict::kFiltered;
}

// Returns whether there are so many similar events that this event must be combined with them.
bool Correlator::Combine(const std::string& group_key, const objects::Event& event,
                         Duration elapsed) {
  Group& group = groups_.Use(group_key);
  if (elapsed - group.last > options_.similar_within) group.messages.clear();
  group.last = elapsed;
  group.messages.insert(std::hash<std::string>()(event.message));
  if (group.messages.size() < options_.max_similar) return false;
  group.messages.erase(group.messages.begin());
  return true;
}

bool Correlator::TakeToken(const std::string& key, Duration elapsed) {
  Bucket& bucket = buckets_.Use(key);
  const double burst = options_.burst;
  if (bucket.tokens < 0) {
    bucket.tokens = burst;
  } else {
    const double gained = static_cast<double>((elapsed - bucket.filled).count()) /
                          static_cast<double>(options_.refill.count());
    bucket.tokens = std::min(burst, bucket.tokens + gained);
  }
  bucket.filled = elapsed;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

}  // namespace tfjob::events
