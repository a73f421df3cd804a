// Settings of the process runner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/local/process/environment.h"
#include "operator/local/process/lifecycle.h"

namespace tfjob::process {

struct Options {
  // Absolute. Holds logs/<pod>/<container>.log, and pods/<uid>/ while a pod lives.
  std::string state_dir;
  std::string working_dir = "/";  // of containers without workingDir
  std::string name_space;         // "": all
  std::vector<LocalImage> images;
  Variables environment;  // what every container starts with: PATH, HOME, …
  // Further variables of one pod's containers; may be empty.
  std::function<Variables(const objects::ObjectMeta&)> pod_environment;
  PodLifecycle::Options lifecycle;
  bool keep_volumes = false;  // leave the emptyDirs of pods that are gone
  // Whether processes that escape their container are collected too, for which this process must
  // start no others.
  bool adopt_orphans = false;
};

// Where the output of a container goes; restarts and later pods of the same name are appended.
std::string LogPath(const Options& options, const std::string& name_space, const std::string& pod,
                    const std::string& container);

// Whether a pod template can run here at all, before anything is started: the fields can be read,
// and every container has a command or a local image. Gives the template's warnings. `path` is
// where the template stands, for errors.
StatusOr<std::vector<std::string>> CheckTemplate(const Options& options, const Json& pod_template,
                                                 const std::string& path);

}  // namespace tfjob::process
