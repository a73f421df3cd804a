// Plans how a container's volumes are mounted at their mountPaths without leaving a trace on the
// machine.
//
// Every volume is bind-mounted at its mountPath in a mount namespace of the container. If the path
// does not exist on the machine, a small tmpfs covers the deepest existing folder above the path,
// but only inside that namespace. All entries of the covered folder are made visible again in the
// tmpfs (a "graft"), and the missing folders are created there. The machine's own folders do not
// change. Files that the container creates directly in the covered folder disappear with the
// container, as in a cluster. A mountPath inside another volume is created in that volume.
#pragma once

#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "operator/local/process/launch.h"
#include "operator/local/process/volumes.h"

namespace tfjob::process {

// Returns the steps that mount the container's volumes, or no steps if it has none to mount.
// Planning already creates the sources named by subPath, the mount points inside volumes and, if it
// is needed, the folder `new_root`. It is needed if the top-level folder of a mountPath is missing:
// the steps then assemble a root file system on a tmpfs mounted at `new_root`, and make it the
// container's root. Errors name the volume and the mountPath.
StatusOr<std::vector<MountAction>> PlanMounts(const Container& container,
                                              const HostVolumes& volumes,
                                              const Variables& variables,
                                              const std::string& new_root);

}  // namespace tfjob::process
