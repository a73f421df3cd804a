// Reads the process's environment and its limits. No other file reads environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tfjob {

// Returns the variable's value, or nullopt if it is not set. A variable that is set to "" counts as
// set.
std::optional<std::string> GetEnv(const char* name);
// Like GetEnv, but also erases the variable: overwrites its memory, so that /proc/<pid>/environ
// does not show the value, and removes it from the environment, so that child processes do not
// inherit it. Not thread-safe: call it before threads start.
std::optional<std::string> TakeEnv(const char* name);
// Returns "NAME=value" for every variable.
std::vector<std::string> EnvironmentBlock();
// Returns this machine's host name.
std::string HostName();
// Returns the number of processors that this process may use (≥ 1), according to its affinity mask
// and the cgroup's CPU quota (v1 and v2), which is rounded up.
int AvailableProcessors();
// Returns the number of bytes of memory that this process may use: the machine's memory or, if
// lower, the cgroup's limit (v1 and v2).
int64_t AvailableMemory();

}  // namespace tfjob
