// Maps container images to programs on this machine.
#pragma once

#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "runtime/base/status.h"

namespace tfjob::local {

// Maps the image tfjob/trainer to the program `trainer`. If `trainer` is "", uses the first
// tfjob-trainer found next to this program, in Bazel's output tree or in PATH; if there is none,
// the image is not local. `images` adds entries "REPOSITORY=PROGRAM", which take precedence.
// Returns InvalidArgument for malformed entries and for programs that cannot be executed.
StatusOr<std::vector<process::LocalImage>> LocalImages(const std::string& trainer,
                                                       const std::vector<std::string>& images);

// Returns the environment that containers start with: PATH, HOME, LANG and similar variables, if
// they are set for this program.
process::Variables BaseEnvironment();

}  // namespace tfjob::local
