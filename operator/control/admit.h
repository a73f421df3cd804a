// Converts a stored TFJob to the form that decisions use, and checks whether the job can run. The
// CRD rejects most invalid jobs, but an older CRD may have accepted them.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/api/validate.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/status.h"

namespace tfjob::control {

struct Admission {
  // The job with defaults. If the job cannot be decoded, contains only its metadata and its status
  // and, as far as they can be read, managedBy, cleanPodPolicy and ttlSecondsAfterFinished.
  api::TFJob job;
  // OK, or InvalidArgument with one problem per line, each beginning with the path of the field. A
  // job that has ended is not validated.
  Status verdict;
};

struct AdmissionRules {
  // The cleanPodPolicy for jobs that do not set it.
  api::CleanPodPolicy clean_pod_policy = api::CleanPodPolicy::kNone;
  // The largest number of replicas that a job may have. Each replica needs a pod, a service and a
  // DNS entry; the limit prevents one job from exhausting the cluster's capacity for these.
  int64_t max_replicas = api::kDefaultMaxReplicasPerJob;
};

// Decodes and validates a job.
Admission Admit(const objects::CustomResource& stored, const AdmissionRules& rules);

}  // namespace tfjob::control
