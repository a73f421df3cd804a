// The kubeflow.org/v1 TFJob's JSON form, both ways. Field names are the API's; what is ours beyond it:
// spec.runPolicy.restartScope, and what operator/api/status_json.h names.
#pragma once

#include <vector>

#include "operator/api/status_json.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"

namespace tfjob::manifest {

// Decodes an object. InvalidArgument lists every error, one a line, each with its path, sorted: wrong types, unknown
// replica types and policy words, keys of tfReplicaSpecs that differ only in case. Pod templates pass untouched.
// `warnings`, when given, gets the unknown fields outside of pod templates and the pre-1.2 fields that belong under
// runPolicy; all of them are ignored.
// A status is read leniently: whatever is not as expected counts as absent, so that any stored status reads.
// No defaults are filled and no rule of api::Validate is checked.
StatusOr<api::TFJob> ParseTFJob(const Json& object,
                                std::vector<api::FieldIssue>* warnings = nullptr);

// As much of it as can be read, with the errors that ParseTFJob returns.
struct PartialTFJob {
  api::TFJob job;  // what is in error counts as absent
  std::vector<api::FieldIssue> warnings;
  Status status;
};
PartialTFJob ReadTFJob(const Json& object);

// The whole object; spec members that were not given are absent, an empty status is absent.
Json ToJson(const api::TFJob& job);
using api::StatusToJson;

}  // namespace tfjob::manifest
