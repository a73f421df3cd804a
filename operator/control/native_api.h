// Determines under which version the server has Workloads and PodGroups of its own
// (scheduling.k8s.io). Asks the server on demand, if the last answer is old.
#pragma once

#include <optional>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe; callers wait while the server is being asked.
class NativeApi {
 public:
  // `discovery` nullptr: the server has none. Both must outlive this.
  NativeApi(client::Discovery* discovery, Clock& clock) : discovery_(discovery), clock_(clock) {}

  // Returns "scheduling.k8s.io/v1beta1", or "" if the server has none. Returns an error if the
  // server cannot be asked and has never answered before.
  StatusOr<std::string> Version();
  // Reports a call in which the server did not know what it knew before: the answer may be old.
  void Doubt();

 private:
  client::Discovery* const discovery_;
  Clock& clock_;
  Mutex mutex_;
  std::optional<std::string> version_ ABSL_GUARDED_BY(mutex_);
  Duration asked_at_ ABSL_GUARDED_BY(mutex_){0};
  bool doubted_ ABSL_GUARDED_BY(mutex_) = true;  // the answer expires sooner
};

}  // namespace tfjob::control
