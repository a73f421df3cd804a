// The pod fields that a kubelet acts upon and the process runner does not.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::process {

// One sentence for each such field that the pod (or pod template) sets, with the field's path.
std::vector<std::string> UnsupportedFields(const JsonField& pod);

}  // namespace tfjob::process
