// A process beside the program that outlives it by a moment: when the program has gone, however it
// went, the guardian kills the process groups that were entrusted to it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::process {

// Thread-safe. The destructor lets the guardian end; groups still entrusted to it are killed.
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
  FileDescriptor pipe_;
};

}  // namespace tfjob::process
