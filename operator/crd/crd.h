// The CustomResourceDefinition of TFJobs, and its reference for people: both are made from the table of fields
// (operator/api/schema.h) and the rules (rules.h).
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tfjob::crd {

// apiextensions.k8s.io/v1. The pod template is open: what it declares beyond its type is what the rules read.
Json CustomResourceDefinition();

// crds/kubeflow.org_tfjobs.yaml, with a comment that says where it comes from.
std::string CrdYaml();

// docs/api.md: every field, and every rule with its text.
std::string ApiReference();

}  // namespace tfjob::crd
