// Determines the API version in which the server serves Kubernetes' own Workloads and PodGroups
// (scheduling.k8s.io). Queries the server only on demand and only if its last answer is too old.
#pragma once

#include <optional>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Caches the server's answer. Thread-safe. While one caller queries the server, other callers wait.
class NativeApi {
 public:
  // If `discovery` is nullptr, the server is assumed to serve neither Workloads nor PodGroups. Both
  // arguments must outlive this object.
  NativeApi(client::Discovery* discovery, Clock& clock) : discovery_(discovery), clock_(clock) {}

  // Returns the apiVersion, such as "scheduling.k8s.io/v1beta1", or "" if the server serves neither
  // kind. If the server does not answer, returns its last answer, or an error if it has never
  // answered.
  StatusOr<std::string> Version();
  // Call this when the server has refused an object of a native gang. The last answer may be out of
  // date, so this makes it expire sooner.
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
