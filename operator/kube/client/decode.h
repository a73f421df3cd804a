// An API server's answers → compact objects. Pods and services are read straight from the text, with
// no DOM; of nodes only what decisions need is kept; of every other kind all but
// metadata.managedFields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/rest/api_error.h"
#include "runtime/base/json_view.h"

namespace tfjob::kube {

// Errors name the kind and the path. Items of lists do not say their type, which is then taken from
// the kind and `api_version`.
StatusOr<client::Object> DecodeObject(client::Kind kind, const JsonView& object,
                                      std::string_view api_version);
StatusOr<client::Object> DecodeObject(client::Kind kind, std::string_view text,
                                      std::string_view api_version);

struct ListPage {
  std::vector<client::Object> objects;
  std::vector<Status> skipped;  // items that do not decode
  std::string resource_version;
  std::string continue_token;  // "": the last page
};
// InvalidArgument when the text is no list.
StatusOr<ListPage> DecodePage(client::Kind kind, std::string_view text,
                              std::string_view api_version);

enum class EventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  EventType type = EventType::kError;
  std::string resource_version;  // of the object
  bool initial_end = false;      // the bookmark behind the initial objects of a streaming list
  // Added, modified, deleted: the object, or why it does not decode.
  StatusOr<client::Object> object = NotFound("");
  ApiError error;  // kError
};
// One line of a watch, with JsonDocument::kPadding readable bytes behind it. InvalidArgument when it
// is no event.
StatusOr<WatchEvent> DecodeEvent(client::Kind kind, JsonDocument& document, std::string_view line,
                                 std::string_view api_version);

}  // namespace tfjob::kube
