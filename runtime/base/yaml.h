// Wraps yaml-cpp: converts YAML text to JSON values. Reads YAML as Kubernetes' own tools do:
// booleans as in YAML 1.1; quoted scalars are always strings; integers are decimal, octal (0o7 or
// 07) or hexadecimal; anchors and merge keys are resolved.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob {

// Parses the documents of the text. Omits empty documents. JSON is valid YAML. Error messages
// contain `what`, the line and, except for invalid UTF-8, the column. Errors include invalid UTF-8,
// duplicate keys, keys that are null or not scalars, and nesting deeper than 200 levels. An alias
// inside the value that it refers to, and anchors and aliases that expand to too much data, are
// also errors.
StatusOr<std::vector<Json>> ParseYaml(std::string_view text, std::string_view what);

// Prints a value in block style, with the members of objects sorted by key.
std::string PrintYaml(const Json& value);

}  // namespace tfjob
