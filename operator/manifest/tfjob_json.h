// Converts a kubeflow.org/v1 TFJob to and from JSON. Field names are those of the API. This
// project adds spec.runPolicy.restartScope and the fields that operator/api/status_json.h names.
#pragma once

#include <vector>

#include "operator/api/status_json.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"

namespace tfjob::manifest {

// Decodes an object. InvalidArgument lists every error, one per line and sorted, each with its
// path: wrong types, unknown replica types and policy words, and keys of tfReplicaSpecs that
// differ only in case. Pod templates are kept unmodified.
// `warnings`, if given, receives the unknown fields outside of pod templates and the pre-1.2
// fields that belong under runPolicy. All of them are ignored.
// A status is read leniently: any unexpected value counts as absent, so that every stored status
// can be read. No defaults are filled in and no rule of api::Validate is checked.
StatusOr<api::TFJob> ParseTFJob(const Json& object,
                                std::vector<api::FieldIssue>* warnings = nullptr);

// As much of a TFJob as can be read, with the errors that ParseTFJob returns.
struct PartialTFJob {
  api::TFJob job;  // invalid fields count as absent
  std::vector<api::FieldIssue> warnings;
  Status status;
};
PartialTFJob ReadTFJob(const Json& object);

// Returns the whole object. Spec members that were not given and an empty status are omitted.
Json ToJson(const api::TFJob& job);
using api::StatusToJson;

}  // namespace tfjob::manifest
