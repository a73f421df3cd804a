// Checks a CustomResourceDefinition without an API server: whether its schema is structural, its
// rules are bounded and refer to fields, and whether an object matches it. For tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

// Returns what an API server would refuse in a version's openAPIV3Schema; empty if it
// would accept it.
std::vector<std::string> StructuralErrors(const Json& schema);

// Returns the mismatches of an object, with paths: types, words, bounds, required and unknown
// members (which the server would drop). Rules are not evaluated.
std::vector<std::string> SchemaErrors(const Json& schema, const Json& object);

}  // namespace tfjob::crd
