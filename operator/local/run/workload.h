// What `tfjob run` takes out of a manifest, checked as a whole before anything is started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/local/process/options.h"
#include "operator/manifest/manifest.h"

namespace tfjob::local {

struct Workload {
  struct Job {
    std::shared_ptr<const Json> object;  // as it is created: with its namespace
    api::TFJob job;                      // with defaults
    std::string model_dir;  // of its training file, as a path of this machine; "": not known
    std::string where;      // it stands in the manifest, for messages
  };
  std::vector<Job> jobs;  // at least one
  std::vector<std::shared_ptr<const Json>> config_maps;
  std::vector<std::string> warnings;
};

// InvalidArgument with one line an error: those of the manifest, objects that the store would refuse
// (dry_run.h), jobs that can never run here (suspended, managed by another controller, containers
// without a program, ConfigMaps that the file does not hold), no job at all. Other kinds of objects are left out with a warning.
StatusOr<Workload> MakeWorkload(manifest::ManifestReport report, const process::Options& options,
                                const std::string& what);

// The folder that `model_dir` of the training file names: looks through the ConfigMaps that the
// job's chief mounts, and maps the path through its hostPath volumes. "" when it cannot be told.
std::string FindModelDir(const api::TFJob& job,
                         const std::vector<std::shared_ptr<const Json>>& config_maps);

}  // namespace tfjob::local
