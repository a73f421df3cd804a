// Determines in which version the server has Workloads and PodGroups of its own
// (scheduling.k8s.io). Asks the server on demand, if the last answer is too old.
#pragma once

#include <optional>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe. While one caller asks the server, the others wait.
class NativeApi {
 public:
  // If `discovery` is nullptr, the server has none. Both arguments must outlive this object.
  NativeApi(client::Discovery* discovery, Clock& clock) : discovery_(discovery), clock_(clock) {}

  // Returns the apiVersion, such as "scheduling.k8s.io/v1beta1", or "" if the server has none. If
  // the server does not answer, returns its last answer, or an error if it has never answered.
  StatusOr<std::string> Version();
  // Reports that the server refused a create. Because the last answer may be out of date, it then
  // expires sooner.
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
