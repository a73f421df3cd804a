// What can be said of a CustomResourceDefinition without an API server: whether its schema is structural, its rules
// are bounded and point at fields, and whether an object fits it. For tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

// What the API server would not accept of a version's openAPIV3Schema; empty: nothing.
std::vector<std::string> StructuralErrors(const Json& schema);

// What does not fit, with paths: types, words, bounds, required and unknown members (which the server would drop). Rules
// are not evaluated.
std::vector<std::string> SchemaErrors(const Json& schema, const Json& object);

}  // namespace tfjob::crd
