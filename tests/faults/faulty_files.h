// Implements a file system with faults that a test switches on and off. The files are those of the
// machine.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/mutex.h"

namespace tfjob::faults {

// The file system of this machine, with faults. Thread-safe.
class FaultyFiles : public FileSystem {
 public:
  // While the disk is full, every write fails with "No space left on device".
  void Fill(bool full) { full_ = full; }
  // While the disk hangs, all writes wait.
  void Hang(bool hangs);
  // Waits until a write hangs. Returns false if no write hangs within a minute.
  bool AwaitHangingWrite();

  StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override {
    return RealFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return RealFileSystem().Remove(path); }
  Status SyncDirectory(const std::string& path) override {
    return RealFileSystem().SyncDirectory(path);
  }

 private:
  friend class FaultyFile;
  // Waits while the disk hangs. Then returns the error of a write to `path` on a full disk, or OK
  // if the disk is not full.
  Status Fault(const std::string& path);

  std::atomic<bool> full_ = false;
  Mutex mutex_;
  CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tfjob::faults
