#include "operator/objects/event.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "operator/objects/fields.h"

namespace tfjob::objects {
namespace {

constexpr char kComponent[] = "tfjob-controller";
constexpr size_t kMaxMessage = 1024;  // the API server refuses longer messages

// FNV-1a, which is the same in every build and process. std::hash is not.
uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string EventName(const Event& event, Time now) {
  const std::string content =
      StrCat(Name(event.type), "\n", event.reason, "\n", event.message, "\n", event.involved.uid);
  const int64_t nanoseconds = now.time_since_epoch().count() * 1000;
  return StrCat(event.involved.name, ".", absl::StrFormat("%016x%08x", nanoseconds, Hash(content)));
}

// Shortens a message to at most kMaxMessage bytes without splitting a character.
std::string Shorten(const std::string& message) {
  if (message.size() <= kMaxMessage) return message;
  constexpr std::string_view kMark = "...";
  size_t length = kMaxMessage - kMark.size();
  while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0) == 0x80) --length;
  return StrCat(message.substr(0, length), kMark);
}

Json ToJson(const ObjectReference& reference) {
  Json json = Json::object();
  const auto set = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  set("apiVersion", reference.api_version);
  set("kind", reference.kind);
  set("namespace", reference.name_space);
  set("name", reference.name);
  set("uid", reference.uid);
  set("resourceVersion", reference.resource_version);
  return json;
}

}  // namespace

std::string_view Name(EventType type) {
  return type == EventType::kNormal ? "Normal" : "Warning";
}

StatusOr<Event> ParseEvent(const Json& object) {
  const JsonField root(object);
  if (!object.is_object()) return root.Mismatch("an Event object");
  Event event;
  const JsonField involved = root["involvedObject"];
  RETURN_IF_ERROR(Read(involved["apiVersion"], event.involved.api_version));
  RETURN_IF_ERROR(Read(involved["kind"], event.involved.kind));
  RETURN_IF_ERROR(Read(involved["namespace"], event.involved.name_space));
  RETURN_IF_ERROR(Read(involved["name"], event.involved.name));
  RETURN_IF_ERROR(Read(involved["uid"], event.involved.uid));
  RETURN_IF_ERROR(Read(involved["resourceVersion"], event.involved.resource_version));
  std::string type;
  RETURN_IF_ERROR(Read(root["type"], type));
  event.type = type == "Warning" ? EventType::kWarning : EventType::kNormal;
  RETURN_IF_ERROR(Read(root["reason"], event.reason));
  RETURN_IF_ERROR(Read(root["message"], event.message));
  return event;
}

Json ToJson(const Event& event, Time now) {
  const std::string& name_space =
      event.involved.name_space.empty() ? std::string("default") : event.involved.name_space;
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", EventName(event, now)}, {"namespace", name_space}}},
          {"involvedObject", ToJson(event.involved)},
          {"type", Name(event.type)},
          {"reason", event.reason},
          {"message", Shorten(event.message)},
          {"source", {{"component", kComponent}}},
          {"reportingComponent", kComponent},
          {"firstTimestamp", FormatTime(now)},
          {"lastTimestamp", FormatTime(now)},
          {"count", 1}};
}

}  // namespace tfjob::objects
