#include "tests/fuzz/watch_property.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client/decode.h"
#include "operator/kube/client/line_splitter.h"
#include "operator/kube/rest/transport.h"
#include "operator/objects/pod.h"
#include "runtime/base/check.h"
#include "runtime/base/json_split.h"

namespace tfjob::fuzz {
namespace {

using objects::Kind;

constexpr size_t kMaxLine = 4096;

struct Lines {
  std::vector<std::string> lines;
  bool failed = false;
  bool within_line = false;
};

Lines Split(std::string_view bytes, size_t piece_size) {
  kube::LineSplitter splitter(kMaxLine);
  Lines result;
  for (size_t at = 0; at < bytes.size() && !result.failed; at += piece_size) {
    std::string piece(bytes.substr(at, piece_size));
    piece.reserve(piece.size() + kube::kReadPadding);
    result.failed = !splitter
                         .Add(piece,
                              [&result](std::string_view line) {
                                result.lines.emplace_back(line);
                                return OkStatus();
                              })
                         .ok();
  }
  result.within_line = splitter.within_line();
  return result;
}

// Compares the results of the fast decoder, which reads the text directly, with those of the slow
// decoder, which uses a DOM.
void CheckObject(Kind kind, std::string_view line, const kube::WatchEvent& event) {
  // Nodes are not compared, because the fast decoder reads only a part of a node.
  if (!event.object.ok() || kind == Kind::kNode) return;
  const StatusOr<Json> document = ParseJson(line, "line");
  if (!document.ok()) return;  // for example duplicate keys, which only the slow reader rejects
  const StatusOr<client::Object> slow = client::Decode(kind, (*document)["object"]);
  ENFORCE(slow.ok(), StrCat("only the fast decoder took it: ", Message(slow.status())));
  if (kind == Kind::kPod) {
    objects::Pod pod = *std::get<std::shared_ptr<const objects::Pod>>(*slow);
    objects::DropSettledConditions(pod);
    ENFORCE(pod == *std::get<std::shared_ptr<const objects::Pod>>(*event.object),
            "the decoders read different pods");
  }
}

void CheckLine(std::string line) {
  line.reserve(line.size() + JsonDocument::kPadding);
  JsonDocument document;
  // The pod group represents all kinds of which the operator creates one object per job.
  for (const Kind kind : {Kind::kPod, Kind::kService, Kind::kTFJob, Kind::kNode, Kind::kPodGroup}) {
    const StatusOr<kube::WatchEvent> event = kube::DecodeEvent(kind, document, line, "v1");
    if (!event.ok()) continue;
    ENFORCE(event->type == kube::EventType::kError || !event->resource_version.empty(),
            "an event has a version");
    CheckObject(kind, line, *event);
  }
  (void)kube::DecodePage(Kind::kPod, line, "v1");
}

std::string Named(std::string_view name, std::string_view spec) {
  return StrCat(R"({"metadata":{"name":")", name, R"(","resourceVersion":"1"},"spec":{"x":)", spec,
                "}}");
}

// Reads `object` in a page, between two other objects.
void CheckNeighbours(std::string_view object) {
  for (const Kind kind : {Kind::kPod, Kind::kTFJob, Kind::kPodGroup}) {
    const auto page =
        kube::DecodePage(kind,
                         StrCat(R"({"items":[)", Named("first", "1"), ",", object, ",",
                                Named("last", "1"), R"(],"metadata":{"resourceVersion":"2"}})"),
                         "v1");
    ENFORCE(page.ok(), StrCat("an object ended its page: ", Message(page.status())));
    ENFORCE(page->objects.size() + page->skipped.size() == 3, "an object of the page is missing");
    ENFORCE(client::MetadataOf(page->objects.front()).name == "first", "the first is missing");
    ENFORCE(client::MetadataOf(page->objects.back()).name == "last", "the last is missing");
  }
}

// Reads the bytes as a part of a TFJob's spec, if SplitJsonArray considers them to be one element.
// The bytes need not be valid JSON.
void CheckContent(std::string_view bytes) {
  const auto parts = SplitJsonArray(StrCat("[", bytes, "]"));
  if (!parts.ok() || parts->size() != 1) return;
  const std::string job = Named("odd", bytes);
  CheckNeighbours(job);
  std::string line = StrCat(R"({"type":"MODIFIED","object":)", job, "}");
  line.reserve(line.size() + JsonDocument::kPadding);
  JsonDocument document;
  const auto event = kube::DecodeEvent(Kind::kTFJob, document, line, "v1");
  ENFORCE(event.ok(), StrCat("an object ended its watch: ", Message(event.status())));
  ENFORCE(event->object.ok(), StrCat("a job was left out: ", Message(event->object.status())));
  ENFORCE(client::MetadataOf(*event->object).name == "odd", "the job has another name");
}

}  // namespace

void CheckWatchProperties(std::string_view bytes) {
  const Lines whole = Split(bytes, bytes.size() + 1);
  const Lines pieces = Split(bytes, 7);
  ENFORCE(whole.failed == pieces.failed, "pieces change whether a line is too long");
  if (!whole.failed) {
    ENFORCE(whole.lines == pieces.lines, "pieces change the lines");
    ENFORCE(whole.within_line == pieces.within_line, "pieces change the end");
  }
  for (const std::string& line : whole.lines) {
    CheckLine(line);
    CheckContent(line);
    const std::string_view object = FindJsonMember(line, "object");
    if (object.starts_with('{')) CheckNeighbours(object);
  }
  CheckContent(bytes);
  kube::HttpResponse response;
  response.code = 500;
  response.body = std::string(bytes);
  ENFORCE(!ToStatus(kube::ParseApiError(response)).message().empty(), "an error says something");
}

}  // namespace tfjob::fuzz
