// Starts one process. Everything is prepared before the fork and only async-signal-safe system
// calls run between fork and exec, so that a multi-threaded program may call it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// One step into a private mount namespace, executed between fork and exec. `purpose` prefixes error
// messages: `volume "data" at /data`.
struct MountAction {
  enum class Kind {
    kNamespace,     // a private mount namespace; inside a user namespace if not permitted otherwise
    kOpen,          // opens `source`, with the mounts below it, as number `slot`
    kOpenReadOnly,  // the same, read-only
    kTmpfs,         // an empty folder of mode `mode` over `target`; its old content becomes `slot`
    kKeep,          // binds `source`, an entry of the folder `slot`, to `target`
    kDirectory,     // creates the folder `target`
    kFile,          // creates the empty file `target`
    kSymlink,       // makes `target` a link to `source`
    kAttach,        // mounts number `slot` at `target`
    kRoot,          // makes `target` the root
  };
  Kind kind = Kind::kNamespace;
  std::string source;
  std::string target;
  std::string purpose;
  int slot = -1;
  mode_t mode = 0755;
};
inline constexpr int kMaximumSlots = 128;

struct LaunchPlan {
  std::vector<std::string> programs;     // tried in order until one exists
  std::vector<std::string> arguments;    // argv, with argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_dir;               // as the process sees it, after the mounts
  std::string log_path;  // standard output and error are appended to it; it must exist
  std::vector<MountAction> mounts;
};

struct Process {
  pid_t pid = -1;  // also the ID of its process group and session
  FileDescriptor pidfd;
};

// Starts the process with empty standard input, default signal dispositions and no other open
// files. The process is killed when the calling thread ends. Errors name what failed: the volume,
// the working folder or the program.
StatusOr<Process> Launch(const LaunchPlan& plan);

struct Exit {
  int exit_code = 0;  // 128 + signal if a signal killed it
  int signal = 0;
};

// Reaps a process whose pidfd is readable and kills the rest of its process group.
StatusOr<Exit> Collect(const Process& process);

// Signals every process of its group. A process that no longer exists is not an error.
void SignalGroup(const Process& process, int signal);

}  // namespace tfjob::process
