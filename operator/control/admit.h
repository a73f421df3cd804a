// Converts a TFJob from the form that the server stores to the form that decisions use, and
// reports why it cannot run, if so. The CRD rejects most invalid jobs, but an older CRD may have
// accepted them.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/status.h"

namespace tfjob::control {

struct Admission {
  // The job with defaults. If it could not be decoded, only its metadata and status, and managedBy,
  // cleanPodPolicy and ttlSecondsAfterFinished if they can be read.
  api::TFJob job;
  // OK, or InvalidArgument with one problem per line, each with its path.
  Status verdict;
};

// Admits a job. `clean_pod_policy` applies if the job does not set cleanPodPolicy.
Admission Admit(const objects::CustomResource& stored, api::CleanPodPolicy clean_pod_policy);

}  // namespace tfjob::control
