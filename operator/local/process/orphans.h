// Processes that left their container's process group and outlived their parents.
#pragma once

#include <sys/types.h>

#include <set>

namespace tfjob::process {

// Orphans among this process's descendants become its children from now on. For the whole process.
void AdoptOrphans();

// Collects adopted children that have ended; with `kill` the others are killed and collected too, and
// then those whom they leave behind.
// Every child that is not in `known` counts as adopted: only for a program that starts no others.
void CollectOrphans(const std::set<pid_t>& known, bool kill);

}  // namespace tfjob::process
