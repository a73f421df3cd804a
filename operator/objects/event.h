// An event to record about an object (core/v1 Event): what happened, once a cause.
#pragma once

#include "operator/objects/metadata.h"

namespace tfjob::objects {

enum class EventType { kNormal, kWarning };
std::string_view Name(EventType type);  // "Normal"

// What an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;

  bool operator==(const ObjectReference&) const = default;
};

struct Event {
  ObjectReference involved;
  EventType type = EventType::kNormal;
  std::string reason;  // from the catalogue operator/api/reasons.h
  std::string message;

  bool operator==(const Event&) const = default;
};

// The core/v1 Event to send: source component "tfjob-controller", count 1, a message of at most
// 1,024 bytes. Its name is
// `<involved name>.<hex of the time and of a hash of the content>`: sending the same event of the
// same time again gives AlreadyExists, and two different events of one time do not collide.
Json ToJson(const Event& event, Time now);
// Reads a core/v1 Event; unknown members are ignored.
StatusOr<Event> ParseEvent(const Json& object);

}  // namespace tfjob::objects
