// Turns a TFJob as the server stores it into the form that decisions use, or reports why it cannot
// be run. The CRD rejects most such jobs up front, but an older CRD may have let them through.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/status.h"

namespace tfjob::control {

struct Admission {
  // With defaults. If `verdict` is a decoding error: only metadata, status, and those of managedBy,
  // cleanPodPolicy and ttlSecondsAfterFinished that can be read.
  api::TFJob job;
  // InvalidArgument, one problem per line, each with its path.
  Status verdict;
};

// `clean_pod_policy` applies to jobs that specify none.
Admission Admit(const objects::CustomResource& stored, api::CleanPodPolicy clean_pod_policy);

}  // namespace tfjob::control
