// Checks which users could replace a path on this machine, before a pod reads and writes the path.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::process {

// Follows an absolute path, through symbolic links, up to its first part that does not exist. In a
// folder that everyone may write to, such as /var/tmp, the next part must belong to one of the
// `trusted` users. Any other owner could replace this part, for example with a link. If such a part
// belongs to anyone else, returns FailedPrecondition with a message that names the part and its
// owner.
Status CheckPathOwners(const std::string& path, const std::set<uid_t>& trusted);

}  // namespace tfjob::process
