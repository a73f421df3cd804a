#include "operator/kube/client/decode.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/client/decode_odd.h"
#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/rest/envelope.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/json_split.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

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
  Json json;
  if (kind == Kind::kNode) {
    json = NodeJson(object);
  } else {
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

// Returns the text of a member; "" if the member is not a plain string.
std::string_view PlainText(std::string_view object, std::string_view key) {
  const std::string_view value = FindJsonMember(object, key);
  const bool plain = value.size() >= 2 && value.front() == '"' && IsUtf8(value) &&
                     value.find('\\') == std::string_view::npos;
  return plain ? value.substr(1, value.size() - 2) : std::string_view();
}

// Returns the kind, namespace and name of an object that may be unreadable.
std::string Describe(Kind kind, std::string_view object) {
  const std::string_view metadata = FindJsonMember(object, "metadata");
  return client::ToString({kind, std::string(PlainText(metadata, "namespace")),
                           std::string(PlainText(metadata, "name"))});
}

StatusOr<Object> DecodeOdd(Kind kind, std::string_view text, std::string_view api_version) {
  StatusOr<OddJson> odd = ReadOddJson(text);
  if (!odd.ok()) return odd.status();
  if (kind != Kind::kTFJob) {
    RETURN_IF_ERROR(odd->problem);
    return client::Decode(kind, std::move(odd->object));
  }
  odd->object["kind"] = client::Name(kind);
  odd->object["apiVersion"] = api_version;
  ASSIGN_OR_RETURN(auto job, objects::ParseCustomResource(std::move(odd->object)));
  if (job.metadata.name.empty()) return InvalidArgument("metadata.name cannot be read");
  job.problem = std::move(odd->problem);
  return Object(std::make_shared<const objects::CustomResource>(std::move(job)));
}

// Returns true if the object would become a JSON tree with too many values. Pods and services are
// read without a tree, and only part of a node becomes a tree.
bool IsTooLarge(Kind kind, std::string_view text) {
  const bool becomes_tree = kind != Kind::kPod && kind != Kind::kService && kind != Kind::kNode;
  return becomes_tree && HasTooManyValues(text);
}

}  // namespace

StatusOr<EventType> ParseEventType(std::string_view text) {
  if (text == "ADDED") return EventType::kAdded;
  if (text == "MODIFIED") return EventType::kModified;
  if (text == "DELETED") return EventType::kDeleted;
  if (text == "BOOKMARK") return EventType::kBookmark;
  if (text == "ERROR") return EventType::kError;
  return InvalidArgument("a watch event of unknown type \"",
                         IsUtf8(text.substr(0, 40)) ? text.substr(0, 40) : "?", "\"");
}

StatusOr<Object> DecodeObject(Kind kind, const JsonView& object, std::string_view api_version) {
  StatusOr<Object> decoded = DecodeFast(kind, object, api_version);
  if (decoded.ok()) return decoded;
  // Decode again with the slower decoder, whose error messages contain the path.
  const Status slow = client::Decode(kind, ToJson(object)).status();
  return Annotate(slow.ok() ? decoded.status() : slow, Describe(kind, object));
}

StatusOr<Object> DecodeObject(Kind kind, std::string_view text, std::string_view api_version) {
  if (IsEnvelope(text)) return DecodeProtobufObject(kind, text);
  // There is one document per thread, so all calls of the thread reuse its buffers.
  thread_local JsonDocument document;
  if (!IsTooLarge(kind, text)) {
    const StatusOr<JsonView> object = document.Parse(text);
    if (object.ok()) return DecodeObject(kind, *object, api_version);
  }
  StatusOr<Object> odd = DecodeOdd(kind, text, api_version);
  if (!odd.ok()) return Annotate(odd.status(), Describe(kind, text));
  return odd;
}

// Splits the text into items first and then parses one item at a time. This saves memory, because a
// parser needs several times as much memory as its text.
StatusOr<ListPage> DecodePage(Kind kind, std::string_view text, std::string_view api_version,
                              const Packer& pack) {
  if (IsEnvelope(text)) return DecodeProtobufPage(kind, text, pack);
  const Status no_list = InvalidArgument("expected a list of ", client::Name(kind), " objects");
  ASSIGN_OR_RETURN(const std::vector<JsonMember> members, SplitJsonObject(text));
  const std::string_view items = FindJsonMember(members, "items");
  JsonDocument document;
  ListPage page;
  if (const std::string_view found = FindJsonMember(members, "metadata"); !found.empty()) {
    ASSIGN_OR_RETURN(const JsonView metadata, document.Parse(found));
    page.resource_version = metadata["resourceVersion"].Text();
    page.continue_token = metadata["continue"].Text();
  }
  if (items.empty() || items == "null") {
    return page.resource_version.empty() ? no_list : StatusOr<ListPage>(std::move(page));
  }
  ASSIGN_OR_RETURN(const auto elements, SplitJsonArray(items));
  page.objects.reserve(elements.size());
  for (const std::string_view item : elements) {
    StatusOr<Object> object = DecodeObject(kind, item, api_version);
    if (!object.ok()) {
      page.skipped.push_back(object.status());
    } else {
      page.objects.push_back(pack ? pack(*std::move(object)) : *std::move(object));
    }
  }
  return page;
}

namespace {

// Decodes an event whose object the fast reader rejects. Returns `refusal` if the line is not an
// event with an object.
StatusOr<WatchEvent> DecodeOddEvent(Kind kind, std::string_view line, std::string_view api_version,
                                    const Status& refusal) {
  const std::string_view object = FindJsonMember(line, "object");
  const StatusOr<EventType> type = ParseEventType(PlainText(line, "type"));
  if (!type.ok() || !object.starts_with('{')) return refusal;
  if (*type == EventType::kBookmark || *type == EventType::kError) return refusal;
  WatchEvent event;
  event.type = *type;
  event.resource_version = PlainText(FindJsonMember(object, "metadata"), "resourceVersion");
  if (event.resource_version.empty()) return refusal;
  event.object = DecodeObject(kind, object, api_version);
  return event;
}

}  // namespace

StatusOr<WatchEvent> DecodeEvent(Kind kind, JsonDocument& document, std::string_view line,
                                 std::string_view api_version) {
  if (IsTooLarge(kind, line)) {
    return DecodeOddEvent(kind, line, api_version,
                          InvalidArgument("a watch event without an object, of more than ",
                                          kMaxJsonValues, " JSON values"));
  }
  const StatusOr<JsonView> parsed = document.ParsePadded(line);
  if (!parsed.ok()) return DecodeOddEvent(kind, line, api_version, parsed.status());
  const JsonView& root = *parsed;
  const JsonView object = root["object"];
  WatchEvent event;
  ASSIGN_OR_RETURN(event.type, ParseEventType(root["type"].Text()));
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
    event.initial_end = metadata["annotations"][kInitialEventsEnd].Text() == "true";
  } else {
    event.object = DecodeObject(kind, object, api_version);
  }
  return event;
}

}  // namespace tfjob::kube
