// Writes TensorBoard event files: records (record.h) of Event messages in
// `<folder>/events.out.tfevents.<unix seconds>.<host>.<pid>.<counter>`. Use one writer per folder,
// since TensorBoard never goes back to a file once it has read a newer one. Every call passes its
// data to the operating system before it returns. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::io {

class EventWriter {
 public:
  // Creates the folder and a new file in it. `clock` must outlive the writer.
  static StatusOr<std::unique_ptr<EventWriter>> Create(const std::string& folder, Clock& clock);
  ~EventWriter();

  // Adds one point per tag at `step`.
  Status AddScalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  // Makes TensorBoard discard what an earlier run wrote for later steps. Call after a restore.
  Status AddStart(int64_t step);

  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, int fd, Clock& clock);
  Status Write(const std::string& event);

  const std::string path_;
  const int fd_;
  Clock& clock_;
};

}  // namespace tfjob::io
