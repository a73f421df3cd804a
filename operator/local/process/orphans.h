// Processes that left their container's process group and outlived their parents.
#pragma once

#include <sys/types.h>

#include <set>

namespace tfjob::process {

// From now on, orphans among this process's descendants become its children. Process-wide.
void AdoptOrphans();

// Reaps adopted children that have exited. With `kill`, also kills and reaps the others, and then
// their orphans. Every child that is not in `known` counts as adopted: only for a program that
// starts no others.
void CollectOrphans(const std::set<pid_t>& known, bool kill);

}  // namespace tfjob::process
