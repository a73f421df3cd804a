// A TFJob as the server holds it → as decisions take it, or why it cannot be run: the CRD refuses most of that at the
// door, but an older one may have let it through.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/status.h"

namespace tfjob::control {

struct Admission {
  // With defaults. When `verdict` is an error of decoding: only metadata, status,
  // and those of managedBy, cleanPodPolicy and ttlSecondsAfterFinished that can be read.
  api::TFJob job;
  // InvalidArgument, one problem a line, each with its path.
  Status verdict;
};

// `clean_pod_policy` is for jobs that say nothing of it.
Admission Admit(const objects::CustomResource& stored, api::CleanPodPolicy clean_pod_policy);

}  // namespace tfjob::control
