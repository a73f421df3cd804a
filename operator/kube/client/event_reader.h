// Reads the events of a watch from a byte stream, in the representation that the server chose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "operator/kube/client/decode.h"

namespace tfjob::kube {

// Splits the stream into events and decodes them. Not thread-safe.
class EventReader {
 public:
  virtual ~EventReader() = default;

  using EventHandler = std::function<Status(WatchEvent)>;
  // Calls `handle` for each event that is now complete. `piece` must have kReadPadding bytes of
  // spare capacity, as strings returned by HttpStream::Read do. Stops at the first error, whether
  // in the stream or returned by `handle`. Do not use the reader after an error.
  virtual Status Add(const std::string& piece, const EventHandler& handle) = 0;

  // Returns true if the bytes received so far end in the middle of an event.
  virtual bool within_event() const = 0;
};

// Returns a protobuf reader if `content_type`, the response's Content-Type, is protobuf, and a JSON
// reader otherwise. The reader returns an error for an event of more than `max_event_bytes`.
std::unique_ptr<EventReader> MakeEventReader(objects::Kind kind, std::string_view api_version,
                                             std::string_view content_type, size_t max_event_bytes);

}  // namespace tfjob::kube
