#include "operator/local/store/record.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/custom_resource.h"
#include "operator/objects/metadata.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/check.h"

namespace tfjob::store {
namespace {

using objects::CustomResource;
using objects::Kind;
using objects::ObjectMeta;
using objects::Pod;
using objects::PodPhase;
using objects::Service;

constexpr int64_t kDefaultGracePeriodSeconds = 30;

bool IsBody(const std::string& member) {
  return member != "metadata" && member != "status";
}

// Prints the members of an object except its metadata and status.
std::string PrintBody(const Json& object) {
  std::string text = "{";
  for (const auto& [key, value] : object.items()) {
    if (!IsBody(key)) continue;
    if (text.size() > 1) text += ',';
    text += StrCat(PrintJson(key), ":", PrintJson(value));
  }
  text += "}";
  text.shrink_to_fit();
  return text;
}

// Returns whether `b` has all members of `a` except metadata and status, with the same values.
bool BodyIn(const Json& a, const Json& b) {
  for (const auto& [key, value] : a.items()) {
    if (!IsBody(key)) continue;
    const auto other = b.find(key);
    if (other == b.end() || *other != value) return false;
  }
  return true;
}

std::string PrintStatus(const Json& object) {
  const auto status = object.find("status");
  return status == object.end() || status->is_null() ? "" : PrintJson(*status);
}

// Parses JSON that this file printed.
Json Reparse(const std::string& text) {
  StatusOr<Json> value = ParseJson(text, "stored object");
  ENFORCE(value.ok(), "the store's own text does not parse");
  return *std::move(value);
}

const std::shared_ptr<const Pod>& PodOf(const Record& record) {
  return std::get<std::shared_ptr<const Pod>>(record.object);
}
const std::shared_ptr<const Service>& ServiceOf(const Record& record) {
  return std::get<std::shared_ptr<const Service>>(record.object);
}
const Json& CustomOf(const Record& record) {
  return *std::get<std::shared_ptr<const CustomResource>>(record.object)->object;
}

// Stores a pod. The decoded form keeps only one annotation, the id of the pod's key.
void StorePod(Record& record, Pod pod, ObjectMeta metadata) {
  pod.key_id = objects::KeyIdOf(metadata);
  record.annotations = std::exchange(metadata.annotations, {});
  pod.metadata = std::move(metadata);
  record.object = std::make_shared<const Pod>(std::move(pod));
}

void StoreService(Record& record, Service service, ObjectMeta metadata) {
  service.metadata = std::move(metadata);
  record.object = std::make_shared<const Service>(std::move(service));
}

// Stores only the metadata that ParseObjectMeta has read, so that the result parses again.
void StoreCustom(Record& record, Json object, const ObjectMeta& metadata) {
  object["metadata"] = objects::ToJson(metadata);
  StatusOr<CustomResource> resource = objects::ParseCustomResource(std::move(object));
  ENFORCE(resource.ok(), "a custom resource whose parts were checked does not decode");
  record.object = std::make_shared<const CustomResource>(*std::move(resource));
}

void StoreEvent(Record& record, Json object, const ObjectMeta& metadata) {
  StoreCustom(record, std::move(object), metadata);
  record.body = PrintJson(CustomOf(record));
}

// Checks the types that the decoding of a custom resource depends on.
Status CheckTypeMeta(const Json& object) {
  const JsonField root(object);
  RETURN_IF_ERROR(root["apiVersion"].StringOr("").status());
  return root["kind"].StringOr("").status();
}

bool IsEvent(const Record& record) {
  const auto* custom = std::get_if<std::shared_ptr<const CustomResource>>(&record.object);
  return custom != nullptr && *custom == nullptr;
}

StatusOr<Record> MakePod(const Json& object, ObjectMeta metadata) {
  ASSIGN_OR_RETURN(const Pod wanted, objects::ParsePod(object));
  Record record;
  ASSIGN_OR_RETURN(
      record.grace_period_seconds,
      JsonField(object)["spec"]["terminationGracePeriodSeconds"].IntOr(kDefaultGracePeriodSeconds));
  record.body = PrintBody(object);
  record.status = R"({"phase":"Pending"})";
  Pod pod;
  pod.phase = PodPhase::kPending;
  pod.in_scheduling_group = wanted.in_scheduling_group;
  pod.node_name = wanted.node_name;
  StorePod(record, std::move(pod), std::move(metadata));
  return record;
}

StatusOr<Record> PodWithBody(const Record& record, const Json& object, ObjectMeta metadata) {
  ASSIGN_OR_RETURN(const Pod wanted, objects::ParsePod(object));
  Record next = record;
  next.body = PrintBody(object);
  Pod pod = *PodOf(record);
  pod.in_scheduling_group = wanted.in_scheduling_group;
  pod.node_name = wanted.node_name;
  StorePod(next, std::move(pod), std::move(metadata));
  return next;
}

StatusOr<Record> PodWithStatus(const Record& record, const Json& object, ObjectMeta metadata) {
  ASSIGN_OR_RETURN(Pod pod, objects::ParsePod(object));
  Record next = record;
  next.status = PrintStatus(object);
  pod.node_name = PodOf(record)->node_name;
  pod.in_scheduling_group = PodOf(record)->in_scheduling_group;
  StorePod(next, std::move(pod), std::move(metadata));
  return next;
}

StatusOr<Record> ServiceWithBody(Record record, const Json& object, ObjectMeta metadata) {
  ASSIGN_OR_RETURN(Service service, objects::ParseService(object));
  record.body = PrintBody(object);
  StoreService(record, std::move(service), std::move(metadata));
  return record;
}

size_t JsonBytes(const Json& value) {
  // The bytes that malloc needs for a node in the map of members: the links of the red-black tree,
  // the key and the value.
  constexpr size_t kMember = 96;
  size_t bytes = 0;
  if (value.is_object()) {
    bytes += 64;
    for (const auto& [key, member] : value.items()) {
      bytes += kMember + (key.size() > 15 ? key.size() + 17 : 0) + JsonBytes(member);
    }
  } else if (value.is_array()) {
    bytes += 32 + 16 * value.size();
    for (const Json& element : value) bytes += JsonBytes(element);
  } else if (value.is_string()) {
    const size_t size = value.get_ref<const std::string&>().size();
    bytes += 48 + (size > 15 ? size + 17 : 0);
  }
  return bytes;
}

size_t TextBytes(const std::string& text) {
  return text.capacity() > 15 ? text.capacity() + 17 : 0;
}

size_t MapBytes(const std::map<std::string, std::string>& map) {
  size_t bytes = 0;
  for (const auto& [key, value] : map) bytes += 112 + TextBytes(key) + TextBytes(value);
  return bytes;
}

size_t MapBytes(const objects::LabelMap& map) {
  return map.bytes() > 15 ? map.bytes() + 17 : 0;
}

size_t MetadataBytes(const ObjectMeta& metadata) {
  size_t bytes = TextBytes(metadata.name) + TextBytes(metadata.name_space) +
                 TextBytes(metadata.uid) + MapBytes(metadata.labels) +
                 MapBytes(metadata.annotations);
  for (const objects::OwnerReference& owner : metadata.owner_references) {
    bytes +=
        sizeof(owner) + TextBytes(owner.api_version) + TextBytes(owner.name) + TextBytes(owner.uid);
  }
  return bytes;
}

}  // namespace

StatusOr<Record> MakeRecord(Kind kind, const Json& object, ObjectMeta metadata) {
  if (kind == Kind::kPod) return MakePod(object, std::move(metadata));
  Record record;
  if (kind == Kind::kService) {
    return ServiceWithBody(std::move(record), object, std::move(metadata));
  }
  RETURN_IF_ERROR(CheckTypeMeta(object));
  Json whole = object;
  whole.erase("status");
  if (kind == Kind::kEvent) {
    StoreEvent(record, std::move(whole), metadata);
  } else {
    StoreCustom(record, std::move(whole), metadata);
  }
  return record;
}

StatusOr<Record> WithBody(const Record& record, Kind kind, const Json& object,
                          ObjectMeta metadata) {
  if (kind == Kind::kPod) return PodWithBody(record, object, std::move(metadata));
  if (kind == Kind::kService) return ServiceWithBody(record, object, std::move(metadata));
  RETURN_IF_ERROR(CheckTypeMeta(object));
  Record next = record;
  if (kind == Kind::kEvent) {
    StoreEvent(next, object, metadata);
    return next;
  }
  Json whole = object;
  whole.erase("status");
  const Json& old = CustomOf(record);
  if (const auto status = old.find("status"); status != old.end()) whole["status"] = *status;
  StoreCustom(next, std::move(whole), metadata);
  return next;
}

StatusOr<Record> WithStatus(const Record& record, Kind kind, const Json& object,
                            ObjectMeta metadata) {
  if (kind == Kind::kPod) return PodWithStatus(record, object, std::move(metadata));
  Record next = record;
  if (kind == Kind::kService) {
    next.status = PrintStatus(object);
    StoreService(next, *ServiceOf(record), std::move(metadata));
    return next;
  }
  if (kind == Kind::kEvent) return InvalidArgument("an Event has no status");
  Json whole = CustomOf(record);
  whole.erase("status");
  if (const auto status = object.find("status"); status != object.end()) whole["status"] = *status;
  StoreCustom(next, std::move(whole), metadata);
  return next;
}

Record WithMetadata(const Record& record, Kind kind, ObjectMeta metadata) {
  Record next = record;
  switch (kind) {
    case Kind::kPod:
      StorePod(next, *PodOf(record), std::move(metadata));
      break;
    case Kind::kService:
      StoreService(next, *ServiceOf(record), std::move(metadata));
      break;
    case Kind::kEvent:
      StoreEvent(next, Reparse(record.body), metadata);
      break;
    default:
      StoreCustom(next, CustomOf(record), metadata);
      break;
  }
  return next;
}

void Compact(Record& record, Kind kind) {
  if (kind == Kind::kEvent) record.object = std::shared_ptr<const CustomResource>();
}

bool SameBody(const Record& record, Kind kind, const Json& object) {
  switch (kind) {
    case Kind::kPod:
    case Kind::kService:
      return record.body == PrintBody(object);
    case Kind::kEvent:
      return BodyIn(Reparse(record.body), object) && BodyIn(object, Reparse(record.body));
    default:
      return BodyIn(CustomOf(record), object) && BodyIn(object, CustomOf(record));
  }
}

bool SameStatus(const Record& record, Kind kind, const Json& object) {
  if (kind == Kind::kPod || kind == Kind::kService) return record.status == PrintStatus(object);
  if (kind == Kind::kEvent) return false;
  const JsonField held = JsonField(CustomOf(record))["status"];
  const JsonField wanted = JsonField(object)["status"];
  if (!held.present() || !wanted.present()) return held.present() == wanted.present();
  return *held.value() == *wanted.value();
}

ObjectMeta MetadataOf(const Record& record) {
  ObjectMeta metadata = client::MetadataOf(Decoded(record));
  if (!record.annotations.empty()) metadata.annotations = record.annotations;
  return metadata;
}

Json WholeObject(const Record& record) {
  if (IsEvent(record)) return Reparse(record.body);
  if (record.body.empty()) return CustomOf(record);
  Json object = Reparse(record.body);
  object["metadata"] = objects::ToJson(MetadataOf(record));
  if (!record.status.empty()) object["status"] = Reparse(record.status);
  return object;
}

client::Object Decoded(const Record& record) {
  if (!IsEvent(record)) return record.object;
  StatusOr<client::Object> decoded = client::Decode(Kind::kEvent, Reparse(record.body));
  ENFORCE(decoded.ok(), "the store's own object does not decode");
  return *std::move(decoded);
}

size_t Bytes(const Record& record) {
  constexpr size_t kNode = 48;    // of the map of all records and of the two indexes
  constexpr size_t kShared = 32;  // control block and malloc overhead
  constexpr size_t kUid = 48;
  constexpr size_t kEventName = 64;
  size_t bytes = kNode + sizeof(client::Key) + sizeof(Record) + TextBytes(record.body) +
                 TextBytes(record.status) + MapBytes(record.annotations);
  if (IsEvent(record)) return bytes + kEventName;
  const ObjectMeta& metadata = client::MetadataOf(record.object);
  const size_t key =
      sizeof(client::Key) + TextBytes(metadata.name) + TextBytes(metadata.name_space);
  bytes += kShared + MetadataBytes(metadata) + TextBytes(metadata.name) + kNode + kUid +
           metadata.owner_references.size() * (kNode + key);
  if (const auto* pod = std::get_if<std::shared_ptr<const Pod>>(&record.object)) {
    return bytes + sizeof(Pod) + sizeof(objects::ContainerStatus) * (*pod)->containers.capacity() +
           sizeof(objects::PodCondition) * (*pod)->conditions.capacity();
  }
  if (std::holds_alternative<std::shared_ptr<const Service>>(record.object)) {
    return bytes + sizeof(Service);
  }
  return bytes + sizeof(CustomResource) + JsonBytes(CustomOf(record));
}

}  // namespace tfjob::store
