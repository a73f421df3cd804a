// The volumes of a pod as files and folders of this machine.
#pragma once

#include <map>
#include <string>

#include "operator/local/process/environment.h"
#include "operator/local/process/pod_spec.h"

namespace tfjob::process {

struct HostVolume {
  std::string path;  // the file or folder on this machine
  bool read_only = false;
  std::string description;  // `volume "data" (hostPath /data)`, for errors
};
using HostVolumes = std::map<std::string, HostVolume>;

// Creates what the mounted volumes need. An emptyDir is a folder of `pod_folder`, and the files of
// a ConfigMap are written there. A claim is a folder of `claims_folder`, which pods share. A
// hostPath is checked or created according to its type (the type "" creates a folder, as container
// runtimes do). Calling it again for the same pod changes nothing. Errors name the volume: NotFound
// for a ConfigMap that does not exist (yet), FailedPrecondition for a hostPath of another type,
// Unimplemented for volume kinds that this machine does not have.
StatusOr<HostVolumes> PrepareVolumes(const PodSpec& pod, const std::string& pod_folder,
                                     const std::string& claims_folder,
                                     const ConfigMapReader& config_maps);

// A path below a volume: relative and without "..". Otherwise InvalidArgument, starting
// with `what`.
Status CheckRelative(const std::string& path, const std::string& what);

}  // namespace tfjob::process
