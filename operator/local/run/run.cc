#include "operator/local/run/run.h"

#include <signal.h>

#include <filesystem>
#include <ostream>
#include <vector>

#include "operator/local/process/options.h"
#include "operator/local/run/local_images.h"
#include "operator/local/run/local_run.h"
#include "operator/local/run/state_dir.h"
#include "operator/local/run/workload.h"
#include "operator/manifest/manifest.h"
#include "runtime/base/env.h"

namespace tfjob::local {
namespace {

// Returns the folder for claims. It is not inside the state folder, because a claim's data must
// survive the run, as in a cluster.
std::string ClaimsDir(const RunOptions& options) {
  std::string folder = options.claims_dir;
  if (folder.empty()) {
    std::string data = GetEnv("XDG_DATA_HOME").value_or("");
    if (data.empty()) data = GetEnv("HOME").value_or("") + "/.local/share";
    folder = StrCat(data, "/tfjob/claims");
  }
  return std::filesystem::absolute(folder).lexically_normal().string();
}

StatusOr<process::RunnerOptions> ProcessOptions(const RunOptions& options) {
  process::RunnerOptions process;
  ASSIGN_OR_RETURN(process.images, LocalImages(options.trainer, options.images));
  process.environment = BaseEnvironment();
  process.working_dir = std::filesystem::current_path().string();
  process.lifecycle.crash_backoff.initial = options.crash_backoff;
  process.claims_dir = ClaimsDir(options);
  process.keep_volumes = options.keep;
  process.adopt_orphans = true;
  return process;
}

// Returns whether this run will create the folder. A folder that already exists was kept by an
// earlier run, so this run does not remove it.
bool WillCreate(const std::string& folder) {
  std::error_code ignored;
  return !std::filesystem::exists(std::filesystem::symlink_status(folder, ignored));
}

StatusOr<Workload> ReadWorkload(const RunOptions& options, const process::RunnerOptions& process,
                                view::Console& console) {
  ASSIGN_OR_RETURN(const std::string text, view::ReadInput(options.file, console));
  const std::string name = view::InputName(options.file);
  return MakeWorkload(manifest::CheckManifest(text, name), process, name);
}

}  // namespace

int Run(const RunOptions& options, StopSource& stop, view::Console& console) {
  auto process = ProcessOptions(options);
  const StatusOr<Workload> workload =
      process.ok() ? ReadWorkload(options, *process, console) : process.status();
  if (!workload.ok()) {
    view::PrintError(console, workload.status());
    return view::kBadInput;
  }
  for (const std::string& warning : workload->warnings) view::PrintWarning(console, warning);
  const auto state_dir =
      StateDir::Create(options.state_dir, workload->jobs.front().job.metadata.name);
  if (!state_dir.ok()) {
    view::PrintError(console, state_dir.status());
    return absl::IsFailedPrecondition(state_dir.status()) ? view::kBadInput : view::kFailed;
  }
  process->state_dir = state_dir->path();
  process->claim_folders = workload->claim_folders;
  const std::string pods = state_dir->path() + "/pods";
  const bool removes_pods = !options.keep && WillCreate(pods);
  const auto succeeded = RunWorkload(options, *workload, *process, stop, console);
  std::error_code ignored;
  if (removes_pods) std::filesystem::remove_all(pods, ignored);
  if (!succeeded.ok()) view::PrintError(console, succeeded.status());
  if (stop.signal() == SIGPIPE)
    console.err << "tfjob: the run was stopped because its output cannot be written any longer\n";
  if (stop.requested()) return 128 + stop.signal();
  return succeeded.ok() && *succeeded ? view::kSucceeded : view::kFailed;
}

}  // namespace tfjob::local
