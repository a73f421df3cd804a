// Extracts what `tfjob run` needs from a manifest, and checks all of it before any job is created.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/local/process/options.h"
#include "operator/manifest/manifest.h"

namespace tfjob::local {

struct Workload {
  struct Job {
    std::shared_ptr<const Json> object;  // as it will be created, with its namespace
    api::TFJob job;                      // decoded, with defaults
    std::string model_dir;  // named by its training file, as a path on this machine; "" if unknown
    std::string where;      // its position in the manifest, for messages
  };
  std::vector<Job> jobs;  // at least one
  std::vector<std::shared_ptr<const Json>> config_maps;
  // The folders that the manifest names for its claims: RunnerOptions::claim_folders.
  std::map<std::string, std::string> claim_folders;
  std::vector<std::string> warnings;
};

// Returns the workload of a manifest: its jobs, ConfigMaps and PersistentVolumeClaims. Objects of
// other kinds are ignored with a warning. On failure, returns InvalidArgument with one line per
// error:
//   - errors of the manifest;
//   - claims whose annotation tfjob.dev/local-path is not an absolute path;
//   - objects that the store would reject (dry_run.h);
//   - jobs that can never run here, because they are suspended or managed by another controller,
//     have containers without a program, or need ConfigMaps that the file does not contain;
//   - a manifest without a job.
StatusOr<Workload> MakeWorkload(manifest::ManifestReport report,
                                const process::RunnerOptions& options, const std::string& what);

// Returns the folder that `model_dir` in the training file names, as a path on this machine. Looks
// for the training file in the ConfigMap volumes of the job's chief, or else its master, or else
// its worker. Maps the path through the hostPath volumes and claims of the same pod. Returns "" if
// the folder cannot be determined.
std::string FindModelDir(const api::TFJob& job,
                         const std::vector<std::shared_ptr<const Json>>& config_maps,
                         const process::RunnerOptions& options);

}  // namespace tfjob::local
