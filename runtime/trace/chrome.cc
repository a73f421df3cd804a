#include "runtime/trace/chrome.h"

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"

namespace tfjob::trace {
namespace {

constexpr int kProcess = 1;

Json Metadata(std::string_view what, int64_t thread, std::string_view name) {
  return {
      {"ph", "M"}, {"pid", kProcess}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
}

double Microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1000;
}

Json Complete(const Event& event, int64_t thread) {
  Json json = {{"ph", "X"},
               {"pid", kProcess},
               {"tid", thread},
               {"cat", Name(event.category)},
               {"name", event.name.view()},
               {"ts", Microseconds(event.start_ns)},
               {"dur", Microseconds(event.duration_ns)}};
  if (const std::string_view kind = event.kind.view(); !kind.empty()) json["args"] = {{"op", kind}};
  return json;
}

}  // namespace

std::string ChromeTrace(const Trace& trace, std::string_view process) {
  std::string text =
      StrCat("{\"traceEvents\": [\n", PrintJson(Metadata("process_name", 0, process)));
  for (const ThreadEvents& thread : trace.threads) {
    text += ",\n" + PrintJson(Metadata("thread_name", thread.id, thread.thread));
    for (const Event& event : thread.events) text += ",\n" + PrintJson(Complete(event, thread.id));
  }
  return text + "\n]}\n";
}

}  // namespace tfjob::trace
