// Runs a helper process that, once this program has exited for whatever reason, kills the process
// groups entrusted to it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// Thread-safe. The destructor makes the guardian kill the groups that are still entrusted to it,
// and exit.
class Guardian {
 public:
  static StatusOr<std::unique_ptr<Guardian>> Create();
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  void Protect(pid_t group);
  void Release(pid_t group);
  pid_t pid() const { return pid_; }

 private:
  Guardian() = default;

  pid_t pid_ = -1;
  FileDescriptor socket_;
};

}  // namespace tfjob::process
