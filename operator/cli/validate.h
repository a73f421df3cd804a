// tfjob validate FILE…: checks manifests.
#pragma once

#include <string>
#include <vector>

#include "operator/view/console.h"

namespace tfjob::cli {

struct ValidateOptions {
  std::vector<std::string> files;  // "-": standard input
};

// Prints all errors and warnings of all files and one line per file. Returns kSucceeded if there
// are no errors.
int Validate(const ValidateOptions& options, view::Console& console);

}  // namespace tfjob::cli
