#include "runtime/io/event_writer.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>

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

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder, Time now,
                                                           FileSystem& files) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  std::string path = NewPath(folder, now);
  StatusOr<std::unique_ptr<OutputFile>> file = files.Create(path);
  // Try the next name if the file exists: in a restarted container, the process has the same host
  // name and process id as before.
  while (absl::IsAlreadyExists(file.status())) file = files.Create(path = NewPath(folder, now));
  RETURN_IF_ERROR(file.status());
  std::unique_ptr<EventWriter> writer(new EventWriter(path, *std::move(file)));
  Event first;
  first.set_wall_time(Seconds(now));
  first.set_file_version("brain.Event:2");
  first.mutable_source_metadata()->set_writer("tfjob-trainer");
  if (const Status written = writer->Write(first.SerializeAsString()); !written.ok()) {
    files.Remove(path).IgnoreError();
    return written;
  }
  return writer;
}

EventWriter::EventWriter(std::string path, std::unique_ptr<OutputFile> file)
    : path_(std::move(path)), file_(std::move(file)) {}

Status EventWriter::AddScalars(int64_t step,
                               const std::vector<std::pair<std::string, double>>& values,
                               Time time) {
  Event event;
  event.set_wall_time(Seconds(time));
  event.set_step(step);
  for (const auto& [tag, value] : values) {
    Summary::Value* point = event.mutable_summary()->add_value();
    point->set_tag(tag);
    point->set_simple_value(static_cast<float>(value));
  }
  return Write(event.SerializeAsString());
}

Status EventWriter::AddGraph(std::string graph_def, Time time) {
  Event event;
  event.set_wall_time(Seconds(time));
  event.set_graph_def(std::move(graph_def));
  return Write(event.SerializeAsString());
}

Status EventWriter::AddStart(int64_t step, Time time) {
  Event event;
  event.set_wall_time(Seconds(time));
  event.set_step(step);
  event.mutable_session_log()->set_status(SessionLog::START);
  return Write(event.SerializeAsString());
}

Status EventWriter::Write(const std::string& event) {
  std::string record;
  AppendRecord(event, record);
  return file_->Append(record);
}

}  // namespace tfjob::io
