// Defines the settings of the process runner.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "operator/local/process/lifecycle.h"

namespace tfjob::process {

struct RunnerOptions {
  // Absolute path of the folder for the logs (see LogPath) and, while a pod exists, the pod's files
  // (pods/<uid>/).
  std::string state_dir;
  // Absolute path of the folder for the volumes of claims (LocalClaim).
  std::string claims_dir;
  // Existing folders for individual claims, by "namespace/name".
  std::map<std::string, std::string> claim_folders;
  std::string working_dir = "/";  // for containers without workingDir
  std::string name_space;         // "" for all
  std::vector<LocalImage> images;
  Variables environment;  // initial variables of every container: PATH, HOME, …
  // Returns further variables for the containers of a pod; may be null.
  std::function<Variables(const objects::ObjectMeta&)> pod_environment;
  PodLifecycle::Options lifecycle;
  bool keep_volumes = false;  // keep the emptyDirs of pods that no longer exist
  // Also reap processes that left their container's process group. This program must then start no
  // other child processes.
  bool adopt_orphans = false;
};

// Returns the path of a container's log. Restarts, and later pods with the same name, append to
// this file.
std::string LogPath(const RunnerOptions& options, const std::string& name_space,
                    const std::string& pod, const std::string& container);

// Describes the folder that replaces a PersistentVolumeClaim. All pods share the folder, which
// outlives them.
struct LocalClaim {
  std::string path;
  bool given =
      false;  // one of claim_folders, which must exist; otherwise it is created when needed
};
LocalClaim FindClaim(const RunnerOptions& options, const std::string& name_space,
                     const std::string& claim);

// Checks that a pod template can run on this machine: its fields can be read, and every container
// has a command or a local image. Used to report problems before any process is started. Returns
// the template's warnings. `path` is the location of the template, for errors.
StatusOr<std::vector<std::string>> CheckTemplate(const RunnerOptions& options,
                                                 const Json& pod_template, const std::string& path);

}  // namespace tfjob::process
