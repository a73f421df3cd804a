// What other programs and people read about the training file, made from the table of keys.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::config {

// JSON Schema, draft 2020-12: docs/training.schema.json holds it, indented. It refuses every file
// that the parser refuses for an unknown key, a type, a choice or a range; what depends on several
// keys (Validate) is left to the parser.
Json TrainingSchema();

// A Markdown table: key, type, default, meaning.
std::string KeyTable();

// The text with what stands between the lines "<!-- keys: begin -->" and "<!-- keys: end -->"
// replaced by KeyTable().
StatusOr<std::string> WithKeyTable(std::string_view markdown);

}  // namespace tfjob::config
