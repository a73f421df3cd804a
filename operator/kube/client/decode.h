// Decodes an API server's answers into compact objects. Pods and services are read straight from
// the text, without a DOM. Of a node only what decisions need is kept; of every other kind,
// everything but metadata.managedFields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/rest/api_error.h"
#include "runtime/base/json_view.h"

namespace tfjob::kube {

// Errors name the kind and the path. List items do not carry their type; it is taken from the kind
// and `api_version`.
StatusOr<client::Object> DecodeObject(client::Kind kind, const JsonView& object,
                                      std::string_view api_version);
StatusOr<client::Object> DecodeObject(client::Kind kind, std::string_view text,
                                      std::string_view api_version);

struct ListPage {
  std::vector<client::Object> objects;
  std::vector<Status> skipped;  // items that do not decode
  std::string resource_version;
  std::string continue_token;  // "": this is the last page
};
// InvalidArgument if the text is not a list.
StatusOr<ListPage> DecodePage(client::Kind kind, std::string_view text,
                              std::string_view api_version);

enum class EventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  EventType type = EventType::kError;
  std::string resource_version;  // the object's
  bool initial_end = false;      // the bookmark that closes the initial objects of a streaming list
  // For kAdded, kModified and kDeleted: the object, or why it does not decode.
  StatusOr<client::Object> object = NotFound("");
  ApiError error;  // for kError
};
// Decodes one line of a watch. JsonDocument::kPadding bytes after it must be readable.
// InvalidArgument if it is not an event.
StatusOr<WatchEvent> DecodeEvent(client::Kind kind, JsonDocument& document, std::string_view line,
                                 std::string_view api_version);

}  // namespace tfjob::kube
