// Reads the events of a watch from a byte stream, in the representation that the server chose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "operator/kube/client/decode.h"

namespace tfjob::kube {

// Not thread-safe.
class EventReader {
 public:
  virtual ~EventReader() = default;

  using EventHandler = std::function<Status(WatchEvent)>;
  // Calls `handle` for each event that is now complete. `piece` must have kReadPadding bytes of
  // spare capacity, as strings returned by HttpStream::Read do. Stops at the first error, its own
  // or one that `handle` returns; the reader must not be used after that.
  virtual Status Add(const std::string& piece, const EventHandler& handle) = 0;

  // Returns true if the bytes so far end in the middle of an event.
  virtual bool within_event() const = 0;
};

// Returns a protobuf reader if `content_type`, the response's Content-Type, is that of protobuf;
// otherwise, a JSON reader. An event of more than `max_event_bytes` is an error.
std::unique_ptr<EventReader> MakeEventReader(objects::Kind kind, std::string_view api_version,
                                             std::string_view content_type, size_t max_event_bytes);

}  // namespace tfjob::kube
