// Implements the machine's file system with faults that a test switches on and off.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/mutex.h"

namespace tfjob::faults {

// Thread-safe.
class FaultyFiles : public FileSystem {
 public:
  // While the disk is full, every write fails with "No space left on device".
  void Fill(bool full) { full_ = full; }
  // While the disk hangs, writes wait.
  void Hang(bool hangs);
  // Waits until a write hangs. Returns false if none does within a minute.
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
  // Waits while the disk hangs, then returns the error with which a write to `path` fails; OK if
  // the disk is not full.
  Status Fault(const std::string& path);

  std::atomic<bool> full_ = false;
  Mutex mutex_;
  CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tfjob::faults
