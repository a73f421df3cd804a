// Generates the CustomResourceDefinition of TFJobs and its reference for users, both from the
// table of fields (operator/api/schema.h) and the rules (rules.h).
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tfjob::crd {

// Returns the apiextensions.k8s.io/v1 object. The pod template is open: apart from its type, it
// declares only what the rules read.
Json CustomResourceDefinition();

// Returns crds/kubeflow.org_tfjobs.yaml, with a comment that names its sources.
std::string CrdYaml();

// Returns docs/api.md: every field, and every rule with its text.
std::string ApiReference();

}  // namespace tfjob::crd
