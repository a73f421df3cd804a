// Decides which jobs are refused although every field has the right type, and which are accepted
// with a warning.
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

// Limit on the total replicas of a job. No cluster has room for more, so a larger job is
// refused as a mistake.
inline constexpr int64_t kMaxReplicas = 100'000;

// Returns the errors of a job, sorted by path; empty if it is valid. Accepts the job as written
// or with defaults. An invalid annotation, which a CRD cannot reject, is an error only until the
// job has started (status.startTime). After that it counts as absent, because an annotation
// should not end a running job. Any template shape is accepted as input; none crashes.
std::vector<FieldIssue> Validate(const TFJob& job);

// Returns probable mistakes that are accepted (by the CRD too): minAvailable outside 0…total,
// several chiefs, and an invalid annotation of a job that has started.
std::vector<FieldIssue> Warnings(const TFJob& job);

}  // namespace tfjob::api
