// Defines an event (core/v1 Event), which records something that happened to an object.
#pragma once

#include "operator/objects/metadata.h"

namespace tfjob::objects {

enum class EventType { kNormal, kWarning };
std::string_view Name(EventType type);  // "Normal"

// Identifies the object that an event is about.
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
  std::string reason;  // from the catalogue in operator/api/reasons.h
  std::string message;

  bool operator==(const Event&) const = default;
};

// Returns the core/v1 Event to send. Its source component is "tfjob-controller", its count is 1,
// and its message is truncated to 1,024 bytes. Its name is
//   `<involved name>.<hex of the time and of a hash of the content>`
// Therefore, if the same event with the same time is sent again, the call fails with AlreadyExists.
// Different events get different names, even if they have the same time. A sender that knows the
// cause of an event replaces this name with one derived from the cause, so that there is one event
// per cause.
Json ToJson(const Event& event, Time now);

}  // namespace tfjob::objects
