// tfjob validate FILE…
#pragma once

#include <string>
#include <vector>

#include "operator/view/console.h"

namespace tfjob::cli {

struct ValidateOptions {
  std::vector<std::string> files;  // "-": standard input
};

// Prints every error and warning of every file, then one line a file. kSucceeded when there is no
// error.
int Validate(const ValidateOptions& options, view::Console& console);

}  // namespace tfjob::cli
