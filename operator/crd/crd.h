// Generates the CustomResourceDefinition of TFJobs, and the API reference for users, from the table
// of fields (operator/api/schema.h) and the rules (rules.h).
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tfjob::crd {

// Returns the apiextensions.k8s.io/v1 object. In pod templates, it declares only the fields that
// the rules read, and accepts all others.
Json CustomResourceDefinition();

// Returns the content of crds/kubeflow.org_tfjobs.yaml, including a comment that names its sources.
std::string CrdYaml();

// Returns the content of docs/api.md, which lists every field, and every rule with its message.
std::string ApiReference();

}  // namespace tfjob::crd
