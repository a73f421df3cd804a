// Provides the volumes of a pod as files and folders on this machine.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "operator/local/process/environment.h"
#include "operator/local/process/options.h"
#include "operator/local/process/pod_spec.h"

namespace tfjob::process {

struct HostVolume {
  std::string path;  // the file or folder on this machine
  bool read_only = false;
  std::string description;  // `volume "data" (hostPath /data)`, for errors
};
using ClaimFinder = std::function<LocalClaim(const std::string& claim)>;
using HostVolumes = std::map<std::string, HostVolume>;

// Creates the files and folders of the mounted volumes, and returns the volumes by name. An
// emptyDir becomes a folder in `pod_folder`, where the files of a ConfigMap are written as well. A
// claim becomes the folder that `claims` returns for its name; a folder that the user chose for a
// claim is checked like a hostPath of type Directory. A hostPath is checked or created according to
// its type, and rejected if another user could replace it (path_owner.h). If the type is "" and the
// path is missing, a folder is created, as container runtimes do. Calling the function again for
// the same pod is harmless. Errors name the volume. Returns NotFound for a ConfigMap that does not
// exist (yet), FailedPrecondition for a hostPath of another type, and Unimplemented for volume
// kinds that do not exist on this machine.
StatusOr<HostVolumes> PrepareVolumes(const PodSpec& pod, const std::string& pod_folder,
                                     const ClaimFinder& claims, const ConfigMapReader& config_maps);

// Checks that `path` can be a path inside a volume: relative, not empty and without "..". If it
// cannot, returns InvalidArgument with a message that starts with `what`.
Status CheckRelative(const std::string& path, const std::string& what);

}  // namespace tfjob::process
