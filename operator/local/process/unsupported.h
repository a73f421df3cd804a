// Lists the pod fields that a kubelet honours but the process runner does not.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::process {

// Returns one sentence, which contains the path, for each such field that the pod (or pod template)
// sets.
std::vector<std::string> UnsupportedFields(const JsonField& pod);

}  // namespace tfjob::process
