// Fetches a task's progress.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/progress/progress.h"

namespace tfjob::progress {

// A connection to one task. It is opened by the first call and reopened after it
// breaks. Thread-safe.
class ProgressClient {
 public:
  explicit ProgressClient(std::string address);  // "host:port"
  ~ProgressClient();

  // Returns Unavailable or DeadlineExceeded, naming the address, if the task does not answer
  // within `timeout`.
  StatusOr<Progress> Fetch(Duration timeout);

 private:
  struct Connection;
  const std::string address_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace tfjob::progress
