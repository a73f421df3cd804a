// Starts one process. Everything is prepared before the fork, and only async-signal-safe system
// calls run between fork and exec, so multi-threaded programs can start processes in this way.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// One step of setting up a private mount namespace, executed between fork and exec. `slot` is the
// index of a file descriptor that one step stores for later steps. `purpose`, such as `volume
// "data" at /data`, is the prefix of error messages.
struct MountAction {
  enum class Kind {
    kNamespace,     // enter a private mount namespace, in a new user namespace if necessary
    kOpen,          // clone `source`, with the mounts below it, into `slot`
    kOpenReadOnly,  // the same, read-only
    kTmpfs,         // mount an empty tmpfs over `target`; `slot` keeps `source` accessible
    kKeep,          // bind-mount `source`, an entry of the folder in `slot`, at `target`
    kDirectory,     // create the folder `target`
    kFile,          // create the empty file `target`
    kSymlink,       // make `target` a symbolic link to `source`
    kAttach,        // mount the tree in `slot` at `target`
    kRoot,          // make `target` the root folder
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
  std::vector<std::string> arguments;    // argv, including argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_dir;               // as seen by the process, after the mounts
  std::string log_path;                  // standard output and error are appended to it; must exist
  std::vector<MountAction> mounts;
};

struct Process {
  pid_t pid = -1;  // also the ID of the process's group and session
  FileDescriptor pidfd;
};

// Starts the process with an empty standard input, default signal dispositions and no other open
// files. The process is killed when the calling thread exits. Errors name the part that failed: the
// volume, the working folder or the command.
StatusOr<Process> Launch(const LaunchPlan& plan);

struct Exit {
  int exit_code = 0;  // 128 + signal if the process was killed by a signal
  int signal = 0;
};

// Reaps a process that has exited (its pidfd is readable), and kills the other processes of its
// group.
StatusOr<Exit> Collect(const Process& process);

// Sends a signal to every process of the group. It is not an error if the group no longer exists.
// The process must be one that Launch() returned.
void SignalGroup(const Process& process, int signal);

}  // namespace tfjob::process
