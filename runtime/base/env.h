// Reads the process's environment. No other file does.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tfjob {

// Returns the variable's value; nullopt if it is not set. An empty value is a value.
std::optional<std::string> GetEnv(const char* name);
// Returns "NAME=value" for every variable.
std::vector<std::string> EnvironmentBlock();
// Returns this machine's host name.
std::string HostName();
// Returns how many processors this process may use: the affinity mask and the cgroup's CPU quota
// (v1 and v2), rounded up; ≥ 1.
int AvailableProcessors();

}  // namespace tfjob
