// Manages the folder of one `tfjob run`, with its logs and emptyDirs.
#pragma once

#include <string>

#include "operator/local/process/file_descriptor.h"
#include "runtime/base/status.h"

namespace tfjob::local {

// Locks the folder as long as this object exists, because each run deletes the emptyDirs of its
// pods when it ends, and the pods of another run may have the same names.
class StateDir {
 public:
  // Uses the folder `given`, and creates it if it does not exist. If `given` is "", creates a new
  // folder in $TMPDIR (or /tmp) whose name contains `job`. Returns FailedPrecondition if another
  // run holds the lock.
  static StatusOr<StateDir> Create(const std::string& given, const std::string& job);

  // Returns the absolute path of the folder.
  const std::string& path() const { return path_; }

 private:
  StateDir(std::string path, process::FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  process::FileDescriptor lock_;
};

}  // namespace tfjob::local
