#include "operator/kube/client/decode_protobuf.h"

#include <string>
#include <utility>

#include "operator/kube/rest/envelope.h"
#include "operator/objects/protobuf.h"
#include "runtime/base/protobuf_reader.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

// Returns the bytes of the last field with this number; "" if there is no such field or the message
// is malformed before it.
std::string_view FindField(std::string_view message, uint32_t field) {
  ProtobufReader reader(message);
  std::string_view found;
  while (reader.Next()) {
    if (reader.field() == field) found = reader.Bytes();
  }
  return found;
}

std::string FindText(std::string_view message, uint32_t field) {
  const std::string_view found = FindField(message, field);
  return IsUtf8(found) ? std::string(found) : "";
}

// Identifies an object that cannot be decoded completely. A field that cannot be read is "".
struct Identity {
  std::string name;
  std::string name_space;
  std::string resource_version;
};

Identity FindIdentity(std::string_view object) {
  const std::string_view metadata = FindField(object, 1);
  return {FindText(metadata, 1), FindText(metadata, 3), FindText(metadata, 6)};
}

StatusOr<Object> DecodePod(std::string_view message) {
  ASSIGN_OR_RETURN(objects::Pod pod, objects::ParsePodProtobuf(message));
  objects::DropSettledConditions(pod);
  return Object(std::make_shared<const objects::Pod>(std::move(pod)));
}

StatusOr<Object> DecodeService(std::string_view message) {
  ASSIGN_OR_RETURN(objects::Service service, objects::ParseServiceProtobuf(message));
  return Object(std::make_shared<const objects::Service>(std::move(service)));
}

// Decodes an object's message that is not in an envelope.
StatusOr<Object> DecodeMessage(Kind kind, std::string_view message) {
  StatusOr<Object> object = kind == Kind::kPod ? DecodePod(message) : DecodeService(message);
  if (object.ok()) return object;
  Identity identity = FindIdentity(message);
  return Annotate(object.status(), client::ToString({kind, std::move(identity.name_space),
                                                     std::move(identity.name)}));
}

// Opens an envelope whose content must be a `wanted`, such as "PodList".
StatusOr<std::string_view> OpenAs(Kind kind, std::string_view bytes, std::string_view wanted) {
  if (!HasProtobuf(kind)) {
    return InvalidArgument("protobuf: not used for ", client::Name(kind), " objects");
  }
  ASSIGN_OR_RETURN(const Envelope envelope, OpenEnvelope(bytes));
  if (envelope.kind == wanted) return envelope.message;
  return InvalidArgument("protobuf: expected a ", wanted, ", got another kind");
}

void AddItem(Kind kind, std::string_view item, const Packer& pack, ListPage& page) {
  StatusOr<Object> object = DecodeMessage(kind, item);
  if (!object.ok()) {
    page.skipped.push_back(object.status());
  } else {
    page.objects.push_back(pack ? pack(*std::move(object)) : *std::move(object));
  }
}

// Reads the object of a BOOKMARK, which has only metadata.
Status ReadBookmark(std::string_view object, WatchEvent& event) {
  ASSIGN_OR_RETURN(const objects::ObjectMeta metadata,
                   objects::ParseObjectMetaProtobuf(FindField(object, 1)));
  event.resource_version = metadata.resource_version;
  const auto initial_end = metadata.annotations.find(kInitialEventsEnd);
  event.initial_end = initial_end != metadata.annotations.end() && initial_end->second == "true";
  return OkStatus();
}

struct RawEvent {
  std::string_view type;
  std::string_view object;  // in an envelope
};

StatusOr<RawEvent> SplitEvent(std::string_view frame) {
  ProtobufReader reader(frame);
  RawEvent event;
  while (reader.Next()) {
    if (reader.field() == 1) event.type = reader.Bytes();
    if (reader.field() == 2) event.object = FindField(reader.Bytes(), 1);
  }
  RETURN_IF_ERROR(reader.status());
  return event;
}

}  // namespace

bool HasProtobuf(Kind kind) {
  return kind == Kind::kPod || kind == Kind::kService;
}

StatusOr<Object> DecodeProtobufObject(Kind kind, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::string_view message, OpenAs(kind, bytes, client::Name(kind)));
  return DecodeMessage(kind, message);
}

StatusOr<ListPage> DecodeProtobufPage(Kind kind, std::string_view bytes, const Packer& pack) {
  ASSIGN_OR_RETURN(const std::string_view list,
                   OpenAs(kind, bytes, StrCat(client::Name(kind), "List")));
  ProtobufReader reader(list);
  ListPage page;
  while (reader.Next()) {
    if (reader.field() == 1) {
      page.resource_version = FindText(reader.Bytes(), 2);
      page.continue_token = FindText(reader.Bytes(), 3);
    }
    if (reader.field() == 2) AddItem(kind, reader.Bytes(), pack, page);
  }
  RETURN_IF_ERROR(reader.status());
  if (page.resource_version.empty()) {
    return InvalidArgument("protobuf: a list without a resourceVersion");
  }
  return page;
}

StatusOr<WatchEvent> DecodeProtobufEvent(Kind kind, std::string_view frame) {
  ASSIGN_OR_RETURN(const RawEvent raw, SplitEvent(frame));
  WatchEvent event;
  ASSIGN_OR_RETURN(event.type, ParseEventType(raw.type));
  if (event.type == EventType::kError) {
    ASSIGN_OR_RETURN(event.error, ParseApiErrorProtobuf(raw.object));
    return event;
  }
  ASSIGN_OR_RETURN(const std::string_view object, OpenAs(kind, raw.object, client::Name(kind)));
  if (event.type == EventType::kBookmark) {
    RETURN_IF_ERROR(ReadBookmark(object, event));
  } else {
    event.object = DecodeMessage(kind, object);
    event.resource_version = event.object.ok() ? client::MetadataOf(*event.object).resource_version
                                               : FindIdentity(object).resource_version;
  }
  if (event.resource_version.empty()) {
    return InvalidArgument("a watch event without a resourceVersion");
  }
  return event;
}

}  // namespace tfjob::kube
