// Checks, without an API server, that a CustomResourceDefinition's schema is structural, that its
// rules are bounded and refer to declared fields, and that an object matches the schema. For tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

// Returns the errors for which an API server would reject a version's openAPIV3Schema; empty if it
// would accept the schema.
std::vector<std::string> StructuralErrors(const Json& schema);

// Returns one error, which starts with the path, for each mismatch between an object and the
// schema: wrong types, values that are out of bounds or not in the enum, missing required members,
// and unknown members (which the server would drop). Rules are not evaluated.
std::vector<std::string> SchemaErrors(const Json& schema, const Json& object);

}  // namespace tfjob::crd
