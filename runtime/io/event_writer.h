// Writes TensorBoard event files: records (record.h) of Event messages in
// `<folder>/events.out.tfevents.<unix seconds>.<host>.<pid>.<counter>`. Use one writer per folder,
// because TensorBoard never returns to a file once it has read a newer one. Every call passes its
// data to the operating system before it returns. A call that fails leaves no part of a record in
// the file, so it may be repeated. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::io {

class EventWriter {
 public:
  // Creates the folder and a new file in it.
  static StatusOr<std::unique_ptr<EventWriter>> Create(const std::string& folder, Time now,
                                                       FileSystem& files = RealFileSystem());

  // Adds one point per tag at `step`. `time` is when the values were measured.
  Status AddScalars(int64_t step, const std::vector<std::pair<std::string, double>>& values,
                    Time time);
  // Adds the graph that TensorBoard shows. `graph_def` is a serialised GraphDef of TensorFlow.
  Status AddGraph(std::string graph_def, Time time);
  // Causes TensorBoard to discard the points that earlier runs have written for steps after `step`.
  // Call after a restore.
  Status AddStart(int64_t step, Time time);

  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, std::unique_ptr<OutputFile> file);
  Status Write(const std::string& event);

  const std::string path_;
  const std::unique_ptr<OutputFile> file_;
};

}  // namespace tfjob::io
