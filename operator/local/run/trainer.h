// Which programs of this machine stand for which images.
#pragma once

#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "runtime/base/status.h"

namespace tfjob::local {

// The image tfjob/trainer stands for `trainer`, or when that is "" for tfjob-trainer beside this
// program, or where Bazel puts it, or in PATH; when there is none, the image is no local one.
// `images` adds "REPOSITORY=PROGRAM"; a repository named there wins. InvalidArgument for another
// form and for programs that cannot be executed.
StatusOr<std::vector<process::LocalImage>> LocalImages(const std::string& trainer,
                                                       const std::vector<std::string>& images);

// The environment that containers start with: what this program has of PATH, HOME, LANG and the
// like.
process::Variables BaseEnvironment();

}  // namespace tfjob::local
