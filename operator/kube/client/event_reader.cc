#include "operator/kube/client/event_reader.h"

#include <utility>

#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/client/frame_splitter.h"
#include "operator/kube/client/line_splitter.h"
#include "operator/kube/rest/envelope.h"
#include "runtime/base/json_view.h"

namespace tfjob::kube {
namespace {

class JsonEventReader : public EventReader {
 public:
  JsonEventReader(objects::Kind kind, std::string_view api_version, size_t max_event_bytes)
      : kind_(kind), api_version_(api_version), lines_(max_event_bytes) {}

  Status Add(const std::string& piece, const EventHandler& handle) override {
    return lines_.Add(piece, [&](std::string_view line) -> Status {
      ASSIGN_OR_RETURN(WatchEvent event, DecodeEvent(kind_, document_, line, api_version_));
      return handle(std::move(event));
    });
  }
  bool within_event() const override { return lines_.within_line(); }

 private:
  const objects::Kind kind_;
  const std::string api_version_;
  LineSplitter lines_;
  JsonDocument document_;
};

class ProtobufEventReader : public EventReader {
 public:
  ProtobufEventReader(objects::Kind kind, size_t max_event_bytes)
      : kind_(kind), frames_(max_event_bytes) {}

  Status Add(const std::string& piece, const EventHandler& handle) override {
    return frames_.Add(piece, [&](std::string_view frame) -> Status {
      ASSIGN_OR_RETURN(WatchEvent event, DecodeProtobufEvent(kind_, frame));
      return handle(std::move(event));
    });
  }
  bool within_event() const override { return frames_.within_frame(); }

 private:
  const objects::Kind kind_;
  FrameSplitter frames_;
};

}  // namespace

std::unique_ptr<EventReader> MakeEventReader(objects::Kind kind, std::string_view api_version,
                                             std::string_view content_type,
                                             size_t max_event_bytes) {
  if (IsProtobuf(content_type)) return std::make_unique<ProtobufEventReader>(kind, max_event_bytes);
  return std::make_unique<JsonEventReader>(kind, api_version, max_event_bytes);
}

}  // namespace tfjob::kube
