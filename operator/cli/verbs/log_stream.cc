#include "operator/cli/verbs/log_stream.h"

#include <utility>

#include "runtime/base/thread_pool.h"

namespace tfjob::cli {
namespace {

constexpr Duration kRest = 500ms;
// After a log has ended, the stream waits up to this many times kRest until the container is
// reported as ended.
constexpr int kRestsUntilNews = 10;

// Returns whether reading the log again would fail as well.
bool IsPermanent(const Status& status, RunState state) {
  if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) return true;
  // The log of a container that is starting cannot be read yet.
  return state != RunState::kRunning &&
         (absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status));
}

}  // namespace

LogStream::LogStream(LogReader& logs, LogRequest request, std::string prefix, LogPrinter& printer,
                     std::function<RunState()> state, const StopSource& stop)
    : logs_(logs),
      request_(std::move(request)),
      timestamps_(request_.timestamps),
      prefix_(std::move(prefix)),
      printer_(printer),
      state_(std::move(state)),
      stop_(stop),
      thread_([this] { Run(); }) {}

void LogStream::Run() {
  SetThreadName("log");
  request_.timestamps = true;
  // The server finds a log by the name of its pod. Get the state before each connection, because
  // the name may now belong to the log of another run.
  for (RunState state; (state = state_()) != RunState::kGone;) {
    request_.follow = state == RunState::kRunning;
    request_.previous = state == RunState::kReplaced;
    const Status status = ReadOnce();
    if (status.ok() ? state != RunState::kRunning : IsPermanent(status, state)) break;
    if (printer_.broken() || !Rest(status)) break;
  }
  if (!unfinished_.empty()) PrintLine(std::exchange(unfinished_, ""));
  done_ = true;
}

bool LogStream::Rest(const Status& last) {
  if (stop_.WaitFor(kRest)) return false;
  // If the log has ended, the container probably has, too. Until the state shows this, do not
  // connect again: the connection could deliver the log of the container's next run.
  for (int i = 1; last.ok() && i < kRestsUntilNews && state_() == RunState::kRunning; ++i) {
    if (stop_.WaitFor(kRest)) return false;
  }
  return true;
}

Status LogStream::ReadOnce() {
  seen_ = last_;
  LineCutter cutter([this](std::string_view line) { return PrintLine(line); });
  const Status status =
      logs_.Read(request_, stop_, [&](std::string_view bytes) { return cutter.Add(bytes); });
  // The next connection, if there is one, delivers this line again from its beginning.
  if (std::string rest = cutter.TakeRest(); !rest.empty()) unfinished_ = std::move(rest);
  if (const auto time = ParseTime(last_); time.ok()) {
    request_.since_time = TruncateToSeconds(*time);
    request_.since.reset();
    request_.tail_lines.reset();
  }
  return status;
}

bool LogStream::PrintLine(std::string_view line) {
  unfinished_.clear();
  const size_t space = line.find(' ');
  const std::string_view stamp = line.substr(0, space);
  if (!ParseTime(stamp).ok()) return printer_.Print(prefix_, line);
  // Timestamps of one container have the same length and zone, so they sort chronologically as
  // strings.
  if (stamp <= seen_) return true;
  last_ = stamp;
  const std::string_view text = space == std::string_view::npos ? "" : line.substr(space + 1);
  return printer_.Print(prefix_, timestamps_ ? line : text);
}

}  // namespace tfjob::cli
