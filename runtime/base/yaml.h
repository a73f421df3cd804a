// Wraps yaml-cpp: converts YAML text to JSON values, read as Kubernetes' own tools read YAML (YAML
// 1.1 booleans; quoted scalars stay strings; integers in base 10, 8 (0o7 and 07) and 16; anchors
// and merge keys resolved).
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob {

// Parses every document of the text; empty documents are left out. JSON is valid YAML. Errors
// contain `what`, line and column. Duplicate keys, keys that are not strings, alias loops and more
// than 200 levels are errors.
StatusOr<std::vector<Json>> ParseYaml(std::string_view text, std::string_view what);

// Prints block style, with members in the value's order.
std::string PrintYaml(const Json& value);

}  // namespace tfjob
