// Asks a task for its progress.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/progress/progress.h"

namespace tfjob::progress {

// One connection to one task, made at the first call and made again after it breaks. Thread-safe.
class ProgressClient {
 public:
  explicit ProgressClient(std::string address);  // "host:port"
  ~ProgressClient();

  // Unavailable or DeadlineExceeded, naming the address, when the task does not answer within
  // `timeout`.
  StatusOr<Progress> Fetch(Duration timeout);

 private:
  struct Connection;
  const std::string address_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace tfjob::progress
