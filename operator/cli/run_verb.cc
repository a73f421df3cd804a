// Implements `tfjob run`: turns flags into the options of local::Run().
#include "operator/cli/local_verbs.h"
#include "operator/local/run/run.h"

namespace tfjob::cli {
namespace {

class RunVerb : public Verb {
 public:
  RunVerb() : Verb("run", "Run the TFJobs of a manifest on this machine until they end") {}

  void AddFlags(FlagSet& flags) override;
  int Run(const Invocation& invocation) override {
    return local::Run(options_, invocation.stop, invocation.console);
  }
  bool stops_in_order() const override { return true; }

 private:
  local::RunOptions options_;
};

void RunVerb::AddFlags(FlagSet& flags) {
  AddManifestFile(flags, options_.file);
  flags.Switch("--follow", options_.follow,
               "Print the logs of all pods, each line prefixed with its pod's name");
  flags.Switch("--keep", options_.keep,
               "Keep emptyDirs after the run (logs and claimed volumes are always kept)");
  flags
      .Text("--state-dir", options_.state_dir,
            "Folder for logs and emptyDirs (default: a new one in $TMPDIR)")
      .Complete(CompleteWith::kFiles);
  flags
      .Text("--claims-dir", options_.claims_dir,
            "Folder for the volumes of PersistentVolumeClaims, which outlive the run (default: "
            "~/.local/share/tfjob/claims)")
      .Complete(CompleteWith::kFiles);
  flags
      .Text("--trainer", options_.trainer,
            "Program to run for the image tfjob/trainer (default: tfjob-trainer beside "
            "this program or in PATH)")
      .Complete(CompleteWith::kFiles);
  flags.Repeated("--image", options_.images,
                 "REPOSITORY=PROGRAM: run PROGRAM for this image; may be repeated");
  flags
      .Seconds("--crash-backoff", options_.crash_backoff,
               "Seconds before the second restart of a container; doubles up to 5 minutes")
      .ShowDefault();
  flags
      .Seconds("--report-interval", options_.report_interval,
               "Seconds between progress lines if the output is not a terminal")
      .ShowDefault();
  flags.Check([this] { return CheckManifestFile(*this, options_.file); });
}

}  // namespace

std::unique_ptr<Verb> MakeRunVerb() {
  return std::make_unique<RunVerb>();
}

}  // namespace tfjob::cli
