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

// Returns the steps that mount the container's volumes; empty if it mounts none. Creates the
// sources that subPath names, the mount points inside volumes, and the folder `new_root`. If the
// top-level folder of a mountPath is missing, the steps build a new root over `new_root`. Errors
// name the volume and the mountPath.
StatusOr<std::vector<MountAction>> PlanMounts(const Container& container,
                                              const HostVolumes& volumes,
                                              const Variables& variables,
                                              const std::string& new_root);

}  // namespace tfjob::process
