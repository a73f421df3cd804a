// Finds the errors of a job in which every field has the right type, and the probable mistakes that
// only cause a warning.
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

// The largest number of replicas that a job may have. No cluster has room for more, so a larger
// number is considered a mistake.
inline constexpr int64_t kMaxReplicas = 100'000;

// Returns the errors of a job, sorted by path; empty if it is valid. The job may be as written or
// have defaults. An invalid annotation, which a CRD cannot reject, is an error only until the job
// has started (status.startTime). It is ignored later, because a running job should not end because
// of an annotation. Pod templates may be any JSON; this function never crashes on one.
std::vector<FieldIssue> Validate(const TFJob& job);

// Returns probable mistakes that are nevertheless accepted, also by the CRD: minAvailable below 0
// or above the total, several chiefs, and an invalid annotation of a job that has started.
std::vector<FieldIssue> Warnings(const TFJob& job);

}  // namespace tfjob::api
