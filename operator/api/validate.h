// Finds errors in a job whose fields all have the right type, and probable mistakes that cause only
// a warning.
#pragma once

#include <string>
#include <vector>

#include "operator/api/tfjob.h"

namespace tfjob::api {

struct FieldIssue {
  std::string path;     // "spec.tfReplicaSpecs.Worker.replicas"
  std::string message;  // "expected 0 or more, got -1"

  auto operator<=>(const FieldIssue&) const = default;
};
std::string ToString(const FieldIssue& issue);  // "path: message"

// The largest number of replicas that a job may have. No cluster can run more, so a larger number
// is considered a mistake.
inline constexpr int64_t kMaxReplicas = 100'000;
// The largest number of replicas per job that an operator accepts by default.
inline constexpr int32_t kDefaultMaxReplicasPerJob = 5'000;

// Returns the errors of a job, sorted by path; empty if it is valid. Defaults need not have been
// applied. An invalid annotation, which a CRD cannot reject, is an error until the job has started
// (status.startTime). After that, it is only a warning, because an annotation should not stop a
// running job. Pod templates may be any JSON; this function never crashes on one.
std::vector<FieldIssue> Validate(const TFJob& job);

// Returns probable mistakes that are accepted anyway, even by the CRD: minAvailable below 0 or
// above the total number of replicas, several chiefs, and an invalid annotation of a job that has
// started.
std::vector<FieldIssue> Warnings(const TFJob& job);

}  // namespace tfjob::api
