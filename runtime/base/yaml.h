// The one door to yaml-cpp: YAML text becomes JSON values, read as Kubernetes' own tools read YAML
// (YAML 1.1 booleans, quoted scalars stay strings, integers in base 10, 8 (0o7 and 07) and 16,
// anchors and merge keys resolved).
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob {

// Every document of the text; empty documents are left out. JSON is YAML. Errors name `what`, line
// and column; duplicate keys, keys that are not strings, alias loops and more than 200 levels are
// errors.
StatusOr<std::vector<Json>> ParseYaml(std::string_view text, std::string_view what);

// Block style, members in the value's order.
std::string PrintYaml(const Json& value);

}  // namespace tfjob
