// Under which version the server has Workloads and PodGroups of its own (scheduling.k8s.io), asked for when somebody wants
// to know and the last answer is old.
#pragma once

#include <optional>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe; who asks while the server is asked waits.
class NativeApi {
 public:
  // `discovery` nullptr: the server has none. Both must outlive this.
  NativeApi(client::Discovery* discovery, Clock& clock) : discovery_(discovery), clock_(clock) {}

  // "scheduling.k8s.io/v1beta1", "" when the server has none. An error when the server cannot be asked and never answered
  // before.
  StatusOr<std::string> Version();
  // A call said that the server does not know what it knew: the answer may be old.
  void Doubt();

 private:
  client::Discovery* const discovery_;
  Clock& clock_;
  Mutex mutex_;
  std::optional<std::string> version_ ABSL_GUARDED_BY(mutex_);
  Duration asked_at_ ABSL_GUARDED_BY(mutex_){0};
  bool doubted_ ABSL_GUARDED_BY(mutex_) = true;  // the answer may be old soon
};

}  // namespace tfjob::control
