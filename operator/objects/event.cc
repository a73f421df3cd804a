#include "operator/objects/event.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace tfjob::objects {
namespace {

constexpr char kComponent[] = "tfjob-controller";
constexpr size_t kMaxMessage = 1024;  // the API server rejects longer messages

// Returns the FNV-1a hash, which, unlike std::hash, is the same in every build and process.
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
