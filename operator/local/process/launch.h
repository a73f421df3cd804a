// Starts one process: everything is prepared before the fork, only async-signal-safe system calls
// run between fork and exec, so that a program with many threads may call it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// One step on the way into a private mount namespace, carried out between fork and exec. `purpose`
// is what an error says before the reason: `volume "data" at /data`.
struct MountAction {
  enum class Kind {
    kNamespace,     // a private mount namespace; where that is not allowed, in a user namespace
    kOpen,          // remembers `source`, with what is mounted below it, as number `slot`
    kOpenReadOnly,  // the same, not to be written through
    kTmpfs,  // an empty folder of mode `mode` over `target`, its old content kept as number `slot`
    kKeep,   // `source`, an entry of the folder `slot`, bound to `target`
    kDirectory,  // makes the folder `target`
    kFile,       // makes the empty file `target`
    kSymlink,    // makes `target` a link to `source`
    kAttach,     // puts number `slot` at `target`
    kRoot,       // makes `target` the root
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
  pid_t pid = -1;  // also its process group and its session
  FileDescriptor pidfd;
};

// Starts the process with empty standard input, default signal dispositions and no other open
// files; it is killed when the calling thread ends. Errors name what failed: the volume, the
// working folder, the program.
StatusOr<Process> Launch(const LaunchPlan& plan);

struct Exit {
  int exit_code = 0;  // 128 + signal when a signal ended it
  int signal = 0;
};

// Collects a process whose pidfd is readable, and kills what it left behind in its process group.
StatusOr<Exit> Collect(const Process& process);

// To every process of its group. A process that has gone is no error.
void SignalGroup(const Process& process, int signal);

}  // namespace tfjob::process
