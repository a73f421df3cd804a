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
  std::string reason;   // from the catalogue operator/api/reasons.h
  std::string message;

  bool operator==(const Event&) const = default;
};

// The core/v1 Event to send, named `<involved name>.<hex of the time>`, source component "tfjob-controller", count 1.
Json ToJson(const Event& event, Time now);

}  // namespace tfjob::objects
