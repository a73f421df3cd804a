// Converts a TFJob as the server stores it into the form that decisions use, and checks whether the
// job can run. The CRD rejects most invalid jobs, but an older CRD may have accepted them.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/status.h"

namespace tfjob::control {

struct Admission {
  // The job with defaults. If it cannot be decoded, this contains only its metadata and status, and
  // whichever of managedBy, cleanPodPolicy and ttlSecondsAfterFinished can be read.
  api::TFJob job;
  // OK, or InvalidArgument with one problem per line, each beginning with the path of the field.
  Status verdict;
};

// Decodes and validates a job. `clean_pod_policy` applies if the job does not set cleanPodPolicy.
Admission Admit(const objects::CustomResource& stored, api::CleanPodPolicy clean_pod_policy);

}  // namespace tfjob::control
