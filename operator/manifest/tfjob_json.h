// Converts a kubeflow.org/v1 TFJob to and from JSON. Field names are those of the
// Training Operator's API. This project adds spec.runPolicy.restartScope and the fields
// listed in operator/api/status_json.h.
#pragma once

#include <vector>

#include "operator/api/status_json.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"

namespace tfjob::manifest {

// Decodes an object. If it has errors, returns InvalidArgument with a message that lists all of
// them, one per line, sorted, each with its path. Errors are wrong types, a wrong apiVersion or
// kind, a missing spec, unknown replica types and policies, and keys of tfReplicaSpecs that differ
// only in case. Pod templates are kept unmodified. `warnings`, if given, receives the fields that
// are ignored: unknown fields outside of pod templates, and fields of runPolicy that are placed
// directly under spec, as they were before v1.2 of the Training Operator. Any stored status can be
// read, because an unexpected value in it counts as absent. Does not set defaults or call
// api::Validate.
StatusOr<api::TFJob> ParseTFJob(const Json& object,
                                std::vector<api::FieldIssue>* warnings = nullptr);

// Contains as much of a TFJob as could be read. `status` lists the errors, as returned by
// ParseTFJob.
struct PartialTFJob {
  api::TFJob job;  // invalid fields count as absent
  std::vector<api::FieldIssue> warnings;
  Status status;
};
PartialTFJob ReadTFJob(const Json& object);

// Returns the whole object, without unset members of the spec, and without the status if it is
// empty.
Json ToJson(const api::TFJob& job);
using api::StatusToJson;

}  // namespace tfjob::manifest
