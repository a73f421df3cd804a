// Creates and reads the file in which a container writes why it ended. A kubelet mounts the file at
// terminationMessagePath; here, the file's path is in the container's environment.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace tfjob::process {

inline constexpr char kTerminationLogVariable[] = "TFJOB_TERMINATION_LOG";

// Creates the file, or truncates it, before the container starts. Also creates its folder.
Status CreateTerminationLog(const std::string& path);

// Returns the last line that the container wrote to the file; "" if it wrote none. Reads at most
// the last 4,096 bytes, as a kubelet does.
std::string ReadTerminationLog(const std::string& path);

}  // namespace tfjob::process
