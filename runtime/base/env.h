// The only reader of the process's environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tfjob {

// The variable's value, or nothing when it is not set. An empty value is a value.
std::optional<std::string> GetEnv(const char* name);
// "NAME=value" of every variable.
std::vector<std::string> EnvironmentBlock();
// This machine's host name.
std::string HostName();
// How many processors this process may use: the affinity mask and the cgroup's CPU quota (v1 and
// v2), rounded up; ≥ 1.
int AvailableProcessors();

}  // namespace tfjob
