#include "tests/fuzz/watch_property.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client/decode.h"
#include "operator/kube/client/line_splitter.h"
#include "operator/kube/rest/transport.h"
#include "runtime/base/check.h"

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

// Compares the fast decoder, which reads the text directly, with the slow one, which uses a DOM.
void CheckObject(Kind kind, std::string_view line, const kube::WatchEvent& event) {
  // Nodes are not compared: the fast decoder reads only part of a node.
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
  for (const Kind kind : {Kind::kPod, Kind::kService, Kind::kTFJob, Kind::kNode}) {
    const StatusOr<kube::WatchEvent> event = kube::DecodeEvent(kind, document, line, "v1");
    if (!event.ok()) continue;
    ENFORCE(event->type == kube::EventType::kError || !event->resource_version.empty(),
            "an event has a version");
    CheckObject(kind, line, *event);
  }
  (void)kube::DecodePage(Kind::kPod, line, "v1");
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
  for (const std::string& line : whole.lines) CheckLine(line);
  kube::HttpResponse response;
  response.code = 500;
  response.body = std::string(bytes);
  ENFORCE(!ToStatus(kube::ParseApiError(response)).message().empty(), "an error says something");
}

}  // namespace tfjob::fuzz
