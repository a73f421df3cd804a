#include "operator/cli/verbs/log_stream.h"

#include <utility>

#include "runtime/base/thread_pool.h"

namespace tfjob::cli {
namespace {

constexpr Duration kRest = 500ms;

}  // namespace

LogStream::LogStream(LogReader& logs, LogRequest request, std::string prefix, LogPrinter& printer,
                     std::function<bool()> ended, const StopSource& stop)
    : logs_(logs),
      request_(std::move(request)),
      timestamps_(request_.timestamps),
      prefix_(std::move(prefix)),
      printer_(printer),
      ended_(std::move(ended)),
      stop_(stop),
      thread_([this] { Run(); }) {}

void LogStream::Run() {
  SetThreadName("log");
  request_.follow = true;
  request_.timestamps = true;
  while (true) {
    const bool last = ended_();
    const Status status = ReadOnce();
    if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) break;
    if ((last && status.ok()) || printer_.broken() || stop_.WaitFor(kRest)) break;
  }
  done_ = true;
}

Status LogStream::ReadOnce() {
  LineCutter cutter([this](std::string_view line) { return PrintLine(line); });
  const Status status =
      logs_.Read(request_, stop_, [&](std::string_view bytes) { return cutter.Add(bytes); });
  cutter.Finish();
  if (const auto time = ParseTime(last_); time.ok()) {
    again_ = true;
    request_.since_time = TruncateToSeconds(*time);
    request_.since.reset();
    request_.tail_lines.reset();
  }
  return status;
}

bool LogStream::PrintLine(std::string_view line) {
  const size_t space = line.find(' ');
  const std::string_view stamp = line.substr(0, space);
  if (!ParseTime(stamp).ok()) return printer_.Print(prefix_, line);
  // Timestamps of one container have the same length and zone, so they sort chronologically as
  // strings.
  if (again_ && stamp <= last_) return true;
  last_ = stamp;
  const std::string_view text = space == std::string_view::npos ? "" : line.substr(space + 1);
  return printer_.Print(prefix_, timestamps_ ? line : text);
}

}  // namespace tfjob::cli
