// Checks, with arbitrary bytes, how the operator reads protobuf from an API server: as an object,
// as a list, as an error, as a watch, and as one of several pods.
//   - Reading never crashes, and every error has a message.
//   - The events of a watch do not depend on the pieces in which the bytes arrive.
//   - All texts of an object are UTF-8.
//   - Whatever a pod contains, the other pods of its list are delivered, and a watch that reports
//     the pod does not end.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/client/event_reader.h"
#include "operator/kube/client/frame_splitter.h"
#include "operator/kube/rest/api_error.h"
#include "operator/kube/rest/transport.h"
#include "operator/objects/pod.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tfjob::fuzz {
namespace {

using client::Object;
using objects::Kind;

constexpr size_t kMaxEvent = 4096;

std::string Varint(size_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Field(int number, std::string_view bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  field += Varint(bytes.size());
  return field.append(bytes);
}

std::string InEnvelope(std::string_view kind, std::string_view message) {
  return std::string("k8s\0", 4) + Field(1, Field(2, kind)) + Field(2, message);
}

void CheckText(std::string_view text) {
  ENFORCE(IsUtf8(text), "a text must be UTF-8");
}

void CheckMetadata(const objects::ObjectMeta& metadata) {
  for (const auto& [key, value] : metadata.labels) {
    CheckText(key);
    CheckText(value);
  }
  for (const objects::OwnerReference& owner : metadata.owner_references) CheckText(owner.name);
  for (const std::string& finalizer : metadata.finalizers) CheckText(finalizer);
  CheckText(metadata.name);
  CheckText(metadata.uid);
  CheckText(metadata.resource_version);
}

void CheckObject(const StatusOr<Object>& object) {
  if (!object.ok()) {
    ENFORCE(!Message(object.status()).empty(), "an error must say something");
    return;
  }
  CheckMetadata(client::MetadataOf(*object));
  const auto pod = client::As<objects::Pod>(*object);
  if (pod == nullptr) return;
  CheckText(pod->message);
  CheckText(PrintJson(objects::StatusToJson(*pod)));  // throws if a text is not UTF-8
}

void CheckPage(const StatusOr<kube::ListPage>& page) {
  if (!page.ok()) return CheckObject(page.status());
  for (const Object& object : page->objects) CheckObject(object);
  for (const Status& skipped : page->skipped) CheckObject(skipped);
}

struct Events {
  std::vector<std::string> versions;
  bool failed = false;
  bool within_event = false;

  bool operator==(const Events&) const = default;
};

Events ReadEvents(std::string_view bytes, size_t piece_size) {
  const auto reader =
      kube::MakeEventReader(Kind::kPod, "v1", "application/vnd.kubernetes.protobuf", kMaxEvent);
  Events events;
  for (size_t at = 0; at < bytes.size() && !events.failed; at += piece_size) {
    const Status read =
        reader->Add(std::string(bytes.substr(at, piece_size)), [&](kube::WatchEvent event) {
          if (event.type != kube::EventType::kError) {
            ENFORCE(!event.resource_version.empty(), "an event must have a version");
          }
          if (event.type < kube::EventType::kBookmark) CheckObject(event.object);
          events.versions.push_back(std::move(event.resource_version));
          return OkStatus();
        });
    events.failed = !read.ok();
  }
  events.within_event = !events.failed && reader->within_event();
  return events;
}

// Reads `pod` in a list, between two other pods, and as an event.
void CheckNeighbours(std::string_view pod) {
  const std::string first = Field(1, Field(1, "first"));
  const std::string last = Field(1, Field(1, "last"));
  const auto page =
      kube::DecodeProtobufPage(Kind::kPod,
                               InEnvelope("PodList", Field(1, Field(2, "1")) + Field(2, first) +
                                                         Field(2, pod) + Field(2, last)),
                               nullptr);
  ENFORCE(page.ok(), "a pod ended its list");
  ENFORCE(page->objects.size() + page->skipped.size() == 3, "a pod of the list is missing");
  ENFORCE(client::MetadataOf(page->objects.front()).name == "first", "the first is missing");
  ENFORCE(client::MetadataOf(page->objects.back()).name == "last", "the last is missing");
  const std::string named = Field(1, Field(6, "8")) + Field(3, pod);
  const auto event = kube::DecodeProtobufEvent(
      Kind::kPod, Field(1, "MODIFIED") + Field(2, Field(1, InEnvelope("Pod", named))));
  ENFORCE(event.ok(), "a pod ended its watch");
  ENFORCE(event->resource_version == "8", "the event has another version");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tfjob::objects::Kind;
  namespace kube = tfjob::kube;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Kind kind : {Kind::kPod, Kind::kService, Kind::kTFJob}) {
    tfjob::fuzz::CheckObject(kube::DecodeProtobufObject(kind, bytes));
    tfjob::fuzz::CheckPage(kube::DecodeProtobufPage(kind, bytes, nullptr));
  }
  kube::HttpResponse response;
  response.code = 500;
  response.body = std::string(bytes);
  ENFORCE(!kube::ParseApiError(response).message.empty(), "an error must say something");
  ENFORCE(tfjob::fuzz::ReadEvents(bytes, size + 1) == tfjob::fuzz::ReadEvents(bytes, 7),
          "pieces change the events");
  tfjob::fuzz::CheckNeighbours(bytes);
  return 0;
}
