// Checks without an API server that a CustomResourceDefinition has a structural schema and that its
// rules are bounded and refer to declared fields, and that an object matches the schema. For tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

// Returns the errors for which an API server would refuse a version's openAPIV3Schema; empty if it
// would accept the schema.
std::vector<std::string> StructuralErrors(const Json& schema);

// Returns, with paths, where an object does not match the schema: wrong types, unknown words,
// values out of bounds, missing required members, and unknown members (which the server would
// drop). Rules are not evaluated.
std::vector<std::string> SchemaErrors(const Json& schema, const Json& object);

}  // namespace tfjob::crd
