// The folder of one `tfjob run`: its logs and emptyDirs.
#pragma once

#include <string>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::local {

// Holds a lock on the folder as long as it exists, since each run deletes the emptyDirs of its pods
// at the end, and another run's pods may have the same names.
class StateDir {
 public:
  // Uses the folder `given`, which is created if it does not exist, or, if `given` is "", a new
  // folder in $TMPDIR (or /tmp) whose name contains `job`. Returns FailedPrecondition if another
  // run holds the lock.
  static StatusOr<StateDir> Create(const std::string& given, const std::string& job);

  // An absolute path.
  const std::string& path() const { return path_; }

 private:
  StateDir(std::string path, process::FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  process::FileDescriptor lock_;
};

}  // namespace tfjob::local
