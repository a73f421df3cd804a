// What is refused at the door although every field has the right type, and what is accepted with a
// warning.
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

// More slots than any cluster has room for are a mistake: a job with more replicas in all is refused.
inline constexpr int64_t kMaxReplicas = 100'000;

// The errors of a job, sorted by path; empty when it is valid. Reads the job as written or with
// defaults. What a CRD cannot hold back, an annotation, is an error until the job has started
// (status.startTime): later it counts as absent, since nobody should end a running job by it. Total: any template shape is judged, none crashes.
std::vector<FieldIssue> Validate(const TFJob& job);

// What is probably a mistake, yet accepted (the CRD accepts it too): minAvailable outside 0…total,
// several chiefs, and of a job that has started an annotation that is wrong.
std::vector<FieldIssue> Warnings(const TFJob& job);

}  // namespace tfjob::api
