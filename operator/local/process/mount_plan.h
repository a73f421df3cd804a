// How a container's volumes get to their mountPath without a trace on the machine.
//
// Every volume is bound at its mountPath inside a mount namespace of the container's own. Where the
// machine has no such path, the deepest folder above it that exists is covered, inside that
// namespace, by a small tmpfs that shows all its entries again (a "graft"), and the missing folders
// are made there: nothing is created on the machine, and what the container itself creates directly
// in that folder is gone with it, as in a container. A mountPath inside another volume is made in
// that volume.
#pragma once

#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "operator/local/process/launch.h"
#include "operator/local/process/volumes.h"

namespace tfjob::process {

// Empty without mounts. Makes the sources that a subPath names, the mount points inside volumes,
// and the folder `new_root`, over which a new root is built when a mountPath is missing at the top
// level. Errors name the volume and the mountPath.
StatusOr<std::vector<MountAction>> PlanMounts(const Container& container,
                                              const HostVolumes& volumes,
                                              const Variables& variables,
                                              const std::string& new_root);

}  // namespace tfjob::process
