#include "operator/kube/client/decode.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/pod.h"
#include "operator/objects/service.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

constexpr char kInitialEnd[] = "k8s.io/initial-events-end";

Json MetadataJson(const JsonView& metadata, bool with_annotations) {
  Json json = Json::object();
  const auto members = metadata.Members();
  if (!members.ok()) return ToJson(metadata);  // the decoder reports what is wrong with it
  for (const auto& [key, member] : *members) {
    if (key == "managedFields" || (key == "annotations" && !with_annotations)) continue;
    json.emplace(key, ToJson(member));
  }
  return json;
}

void Keep(Json& json, const JsonView& from, std::string_view key) {
  if (const JsonView member = from[key]; member.present()) json.emplace(key, ToJson(member));
}

Json NodeJson(const JsonView& node) {
  Json spec = Json::object();
  Keep(spec, node["spec"], "taints");
  Keep(spec, node["spec"], "unschedulable");
  Json status = Json::object();
  Keep(status, node["status"], "conditions");
  return {{"metadata", MetadataJson(node["metadata"], false)},
          {"spec", std::move(spec)},
          {"status", std::move(status)}};
}

StatusOr<Json> WholeJson(const JsonView& object) {
  Json json = Json::object();
  ASSIGN_OR_RETURN(const auto members, object.Members());
  for (const auto& [key, member] : members) {
    json.emplace(key, key == "metadata" ? MetadataJson(member, true) : ToJson(member));
  }
  return json;
}

StatusOr<Object> DecodeCustom(Kind kind, const JsonView& object, std::string_view api_version) {
  if (!object.IsObject()) return InvalidArgument("expected an object");
  Json json = NodeJson(object);
  if (kind != Kind::kNode) {
    ASSIGN_OR_RETURN(json, WholeJson(object));
  }
  if (!json.contains("kind")) json["kind"] = client::Name(kind);
  if (!json.contains("apiVersion")) json["apiVersion"] = api_version;
  return client::Decode(kind, std::move(json));
}

template <typename T>
StatusOr<Object> Shared(StatusOr<T> decoded) {
  if (!decoded.ok()) return decoded.status();
  return Object(std::make_shared<const T>(*std::move(decoded)));
}

StatusOr<Object> DecodeFast(Kind kind, const JsonView& object, std::string_view api_version) {
  switch (kind) {
    case Kind::kPod: {
      StatusOr<objects::Pod> pod = objects::ParsePod(object);
      if (pod.ok()) objects::DropSettledConditions(*pod);
      return Shared(std::move(pod));
    }
    case Kind::kService:
      return Shared(objects::ParseService(object));
    default:
      return DecodeCustom(kind, object, api_version);
  }
}

std::string Describe(Kind kind, const JsonView& object) {
  const JsonView metadata = object["metadata"];
  return client::ToString(
      {kind, std::string(metadata["namespace"].Text()), std::string(metadata["name"].Text())});
}

StatusOr<EventType> ParseType(std::string_view text) {
  if (text == "ADDED") return EventType::kAdded;
  if (text == "MODIFIED") return EventType::kModified;
  if (text == "DELETED") return EventType::kDeleted;
  if (text == "BOOKMARK") return EventType::kBookmark;
  if (text == "ERROR") return EventType::kError;
  return InvalidArgument("a watch event of unknown type \"", text.substr(0, 40), "\"");
}

}  // namespace

StatusOr<Object> DecodeObject(Kind kind, const JsonView& object, std::string_view api_version) {
  StatusOr<Object> decoded = DecodeFast(kind, object, api_version);
  if (decoded.ok()) return decoded;
  // Decodes again with the slower decoder, whose error messages contain the path.
  const Status slow = client::Decode(kind, ToJson(object)).status();
  return Annotate(slow.ok() ? decoded.status() : slow, Describe(kind, object));
}

StatusOr<Object> DecodeObject(Kind kind, std::string_view text, std::string_view api_version) {
  // Kept per thread, so that its buffers are reused by all calls of the thread.
  thread_local JsonDocument document;
  const StatusOr<JsonView> object = document.Parse(text);
  if (!object.ok()) return Annotate(object.status(), client::Name(kind));
  return DecodeObject(kind, *object, api_version);
}

StatusOr<ListPage> DecodePage(Kind kind, std::string_view text, std::string_view api_version) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonView list, document.Parse(text));
  if (!list["items"].IsArray() && list["metadata"]["resourceVersion"].Text().empty()) {
    return InvalidArgument("expected a list of ", client::Name(kind), " objects");
  }
  ListPage page;
  page.resource_version = list["metadata"]["resourceVersion"].Text();
  page.continue_token = list["metadata"]["continue"].Text();
  ASSIGN_OR_RETURN(const auto items, list["items"].Elements());
  page.objects.reserve(items.size());
  for (const JsonView& item : items) {
    StatusOr<Object> object = DecodeObject(kind, item, api_version);
    if (object.ok()) {
      page.objects.push_back(*std::move(object));
    } else {
      page.skipped.push_back(object.status());
    }
  }
  return page;
}

StatusOr<WatchEvent> DecodeEvent(Kind kind, JsonDocument& document, std::string_view line,
                                 std::string_view api_version) {
  ASSIGN_OR_RETURN(const JsonView root, document.ParsePadded(line));
  const JsonView object = root["object"];
  WatchEvent event;
  ASSIGN_OR_RETURN(event.type, ParseType(root["type"].Text()));
  if (!object.IsObject()) return InvalidArgument("a watch event without an object");
  if (event.type == EventType::kError) {
    event.error = ParseApiError(object);
    return event;
  }
  const JsonView metadata = object["metadata"];
  event.resource_version = metadata["resourceVersion"].Text();
  if (event.resource_version.empty()) {
    return InvalidArgument("a watch event without a resourceVersion");
  }
  if (event.type == EventType::kBookmark) {
    event.initial_end = metadata["annotations"][kInitialEnd].Text() == "true";
  } else {
    event.object = DecodeObject(kind, object, api_version);
  }
  return event;
}

}  // namespace tfjob::kube
