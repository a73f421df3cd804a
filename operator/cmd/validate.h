// tfjob validate FILE…
#pragma once

#include <string>
#include <vector>

#include "operator/cmd/console.h"

namespace tfjob::cmd {

struct ValidateOptions {
  std::vector<std::string> files;  // "-": standard input
};

// Prints every error and warning of every file, then one line a file. kSucceeded when there is no
// error.
int Validate(const ValidateOptions& options, Console& console);

}  // namespace tfjob::cmd
