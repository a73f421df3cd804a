// Runs a helper process, the guardian, that kills the protected process groups once this program
// has exited, for whatever reason.
#pragma once

#include <sys/types.h>

#include <memory>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// Owns the helper process. Thread-safe. The destructor makes the guardian kill the groups that are
// still protected, and exit.
class Guardian {
 public:
  static StatusOr<std::unique_ptr<Guardian>> Create();
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Add and remove a process group. At most 8,192 groups can be protected at a time; further groups
  // are ignored. If the guardian was killed, these functions have no effect.
  void Protect(pid_t group);
  void Release(pid_t group);
  pid_t pid() const { return pid_; }

 private:
  Guardian() = default;

  pid_t pid_ = -1;
  FileDescriptor socket_;
};

}  // namespace tfjob::process
