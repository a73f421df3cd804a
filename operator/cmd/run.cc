#include "operator/cmd/run.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "operator/cmd/session.h"
#include "operator/cmd/trainer.h"
#include "operator/cmd/workload.h"
#include "operator/manifest/manifest.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"

namespace tfjob::cmd {
namespace {

StatusOr<process::Options> ProcessOptions(const RunOptions& options) {
  process::Options process;
  ASSIGN_OR_RETURN(process.images, LocalImages(options.trainer, options.images));
  process.environment = BaseEnvironment();
  process.working_dir = std::filesystem::current_path().string();
  process.lifecycle.crash_backoff.initial = options.crash_backoff;
  process.keep_volumes = options.keep;
  process.adopt_orphans = true;
  return process;
}

StatusOr<std::string> MakeStateDir(const RunOptions& options, const Workload& workload) {
  if (!options.state_dir.empty()) {
    RETURN_IF_ERROR(MakeDirectories(options.state_dir));
    return std::filesystem::absolute(options.state_dir).lexically_normal().string();
  }
  const std::string parent = GetEnv("TMPDIR").value_or("/tmp");
  std::string path = StrCat(parent, "/tfjob-", workload.jobs.front().job.metadata.name, "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return ErrnoStatus(errno, StrCat("making a folder in ", parent));
  return path;
}

// What is not worth keeping; logs always stay.
void RemoveVolumes(const std::string& state_dir) {
  std::error_code ignored;
  std::filesystem::remove_all(state_dir + "/pods", ignored);
  std::filesystem::remove_all(state_dir + "/claims", ignored);
}

StatusOr<Workload> ReadWorkload(const RunOptions& options, const process::Options& process,
                                Console& console) {
  ASSIGN_OR_RETURN(const std::string text, ReadInput(options.file, console));
  const std::string name = InputName(options.file);
  return MakeWorkload(manifest::CheckManifest(text, name), process, name);
}

}  // namespace

int Run(const RunOptions& options, const StopSource& stop, Console& console) {
  auto process = ProcessOptions(options);
  const StatusOr<Workload> workload =
      process.ok() ? ReadWorkload(options, *process, console) : process.status();
  if (!workload.ok()) {
    PrintError(console, workload.status());
    return kBadInput;
  }
  for (const std::string& warning : workload->warnings)
    console.err << "tfjob: warning: " << warning << "\n";
  const auto state_dir = MakeStateDir(options, *workload);
  if (!state_dir.ok()) {
    PrintError(console, state_dir.status());
    return kFailed;
  }
  process->state_dir = *state_dir;
  Status status;
  bool succeeded = false;
  {
    Session session(options, *workload, *process, console);
    status = session.Run(stop);
    succeeded = session.all_succeeded();
  }
  if (!options.keep) RemoveVolumes(*state_dir);
  if (!status.ok()) PrintError(console, status);
  if (stop.requested()) return 128 + stop.signal();
  return status.ok() && succeeded ? kSucceeded : kFailed;
}

}  // namespace tfjob::cmd
