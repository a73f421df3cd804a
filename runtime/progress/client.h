// Fetches a task's progress.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/progress/progress.h"
#include "runtime/wire/job_key.h"

namespace tfjob::progress {

// Fetches the progress of one task. The first call opens a connection; later calls reopen it if it
// is broken. Thread-safe.
class ProgressClient {
 public:
  // `address` is "host:port". A task with a key reports its progress only to callers that have the
  // key.
  explicit ProgressClient(std::string address, std::optional<wire::JobKey> key = std::nullopt);
  ~ProgressClient();

  // Returns Unavailable or DeadlineExceeded, naming the address, if the task does not answer within
  // `timeout`, and FailedPrecondition if only one side has a key or the keys differ.
  StatusOr<Progress> Fetch(Duration timeout);

 private:
  struct Connection;
  StatusOr<std::shared_ptr<Connection>> Open(Duration timeout);
  std::shared_ptr<Connection> Current();
  void Drop(const std::shared_ptr<Connection>& broken);

  const std::string address_;
  const std::optional<wire::JobKey> key_;
  Mutex mutex_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);  // null if none is open
};

}  // namespace tfjob::progress
