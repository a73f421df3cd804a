#include "runtime/io/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/io/event.pb.h"
#include "runtime/io/record.h"

namespace tfjob::io {
namespace {

double Seconds(Time time) {
  return static_cast<double>(time.time_since_epoch().count()) / 1e6;
}

std::string NewPath(const std::string& folder, Time now) {
  static std::atomic<int> counter{0};
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%010lld", static_cast<long long>(Seconds(now)));
  return StrCat(folder, "/events.out.tfevents.", seconds, ".", HostName(), ".", getpid(), ".",
                counter.fetch_add(1));
}

}  // namespace

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder,
                                                           Clock& clock) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string path = NewPath(folder, clock.Now());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, StrCat("create ", path));
  std::unique_ptr<EventWriter> writer(new EventWriter(path, fd, clock));
  Event first;
  first.set_wall_time(Seconds(clock.Now()));
  first.set_file_version("brain.Event:2");
  first.mutable_source_metadata()->set_writer("tfjob-trainer");
  RETURN_IF_ERROR(writer->Write(first.SerializeAsString()));
  return writer;
}

EventWriter::EventWriter(std::string path, int fd, Clock& clock)
    : path_(std::move(path)), fd_(fd), clock_(clock) {}

EventWriter::~EventWriter() {
  close(fd_);
}

Status EventWriter::AddScalars(int64_t step,
                               const std::vector<std::pair<std::string, double>>& values) {
  Event event;
  event.set_wall_time(Seconds(clock_.Now()));
  event.set_step(step);
  for (const auto& [tag, value] : values) {
    Summary::Value* point = event.mutable_summary()->add_value();
    point->set_tag(tag);
    point->set_simple_value(static_cast<float>(value));
  }
  return Write(event.SerializeAsString());
}

Status EventWriter::AddStart(int64_t step) {
  Event event;
  event.set_wall_time(Seconds(clock_.Now()));
  event.set_step(step);
  event.mutable_session_log()->set_status(SessionLog::START);
  return Write(event.SerializeAsString());
}

Status EventWriter::Write(const std::string& event) {
  std::string record;
  AppendRecord(event, record);
  std::string_view left = record;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, StrCat("write ", path_));
    left.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace tfjob::io
