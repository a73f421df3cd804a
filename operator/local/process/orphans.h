// Handles processes that left their container's process group and outlived their parents.
#pragma once

#include <sys/types.h>

#include <set>

namespace tfjob::process {

// Makes this process the parent (subreaper) of every descendant that is orphaned from now on.
// Affects the whole process.
void AdoptOrphans();

// Reaps adopted children that have exited. If `kill` is true, also kills and reaps the other
// adopted children, and then their orphans. Every child that is not in `known` counts as adopted.
// Therefore, only a program that starts no other child processes may call this.
void CollectOrphans(const std::set<pid_t>& known, bool kill);

}  // namespace tfjob::process
