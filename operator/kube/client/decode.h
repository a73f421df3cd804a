// Decodes an API server's responses into compact objects. Pods and services are read directly from
// the JSON text, without a JSON tree, or from protobuf (decode_protobuf.h). Nodes keep only the
// fields that decisions need; objects of other kinds keep everything except metadata.managedFields.
//
// If one object cannot be decoded, the other objects of the list or stream still can. A TFJob that
// cannot be decoded completely (decode_odd.h) is returned without the parts that cannot be read,
// and with CustomResource::problem set. For an object of any other kind that cannot be decoded
// completely, an error is returned.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/rest/api_error.h"
#include "runtime/base/json_view.h"

namespace tfjob::kube {

// Decodes an object. Errors name the object and the path of the member. Items of a list do not
// contain their type, so it is taken from `kind` and `api_version`.
StatusOr<client::Object> DecodeObject(objects::Kind kind, const JsonView& object,
                                      std::string_view api_version);
// `text` is JSON or an envelope with protobuf.
StatusOr<client::Object> DecodeObject(objects::Kind kind, std::string_view text,
                                      std::string_view api_version);

// Converts each object, as soon as it is decoded, to another form, for example one that needs less
// memory.
using Packer = std::function<client::Object(client::Object)>;

struct ListPage {
  std::vector<client::Object> objects;
  std::vector<Status> skipped;  // one error for each item that cannot be decoded; names the item
  std::string resource_version;
  std::string continue_token;  // "" if this is the last page
};
// Decodes a page of a list. `text` is JSON or an envelope with protobuf. `pack` may be null.
// Returns InvalidArgument if the text is not a list.
StatusOr<ListPage> DecodePage(objects::Kind kind, std::string_view text,
                              std::string_view api_version, const Packer& pack = nullptr);

enum class EventType { kAdded, kModified, kDeleted, kBookmark, kError };
// Parses an event type such as "ADDED". Returns InvalidArgument for any other text.
StatusOr<EventType> ParseEventType(std::string_view text);

// The annotation that is "true" on the bookmark that ends a stream's initial list.
inline constexpr char kInitialEventsEnd[] = "k8s.io/initial-events-end";

struct WatchEvent {
  EventType type = EventType::kError;
  std::string resource_version;  // the object's
  bool initial_end = false;      // true for the bookmark that ends a stream's initial list
  // The object of a kAdded, kModified or kDeleted event, or the error if the object cannot be
  // decoded.
  StatusOr<client::Object> object = NotFound("");
  ApiError error;  // for kError
};
// Decodes one line of a watch in JSON. At least JsonDocument::kPadding bytes after the line must be
// readable. Returns InvalidArgument if the line is not an event.
StatusOr<WatchEvent> DecodeEvent(objects::Kind kind, JsonDocument& document, std::string_view line,
                                 std::string_view api_version);

}  // namespace tfjob::kube
