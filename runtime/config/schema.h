// Generates the schema and the documentation of the training file from the table of keys.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::config {

// Returns the JSON Schema (draft 2020-12) of the training file. docs/training.schema.json contains
// this schema, indented. The schema rejects every file that the parser rejects for an unknown key,
// a wrong type, an unknown choice or a value out of range. It does not cover the rules that involve
// several keys, which Validate checks.
Json TrainingSchema();

// Returns a Markdown table that lists the key, type, default and meaning of every key.
std::string KeyTable();

// Returns `markdown` with KeyTable() in place of the text between the lines "<!-- keys: begin -->"
// and "<!-- keys: end -->". Returns InvalidArgument if either line is missing.
StatusOr<std::string> WithKeyTable(std::string_view markdown);

}  // namespace tfjob::config
