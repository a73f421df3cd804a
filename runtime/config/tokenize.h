// Converts the `tokenize` key from and to JSON.
#pragma once

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Reads a tokenizer and checks all of its keys. Errors are InvalidArgument and name the path.
StatusOr<TokenizeConfig> ReadTokenize(const JsonField& field);
Json TokenizeToJson(const TokenizeConfig& tokenize);
// Returns the JSON Schema of the key.
Json TokenizeSchema();

}  // namespace tfjob::config
