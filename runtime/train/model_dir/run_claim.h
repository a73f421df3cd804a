// Writes and reads the file group.json of model_dir. The task that provides the first state of a
// run writes a number to this file, and all tasks of its group know the number. A task that finds
// this number in its own model_dir shares the folder with the task that wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace tfjob::train {

// The contents of the file.
struct Claim {
  int64_t first_term = 0;  // the number described above
  std::string job_uid;     // the job of the run, and its attempt
  int32_t attempt = 0;
  bool operator==(const Claim&) const = default;
};

// Creates the folder if necessary, and replaces the claim of an earlier run.
Status WriteClaim(const std::string& folder, const Claim& claim,
                  FileSystem& files = RealFileSystem());
// Returns NotFound if there is no such file, and DataLoss if its content is not valid.
StatusOr<Claim> ReadClaim(const std::string& folder);

// A claim that could not be written when the run began, for example because the disk was full. The
// thread that saves checkpoints writes it later. Thread-safe.
class LateClaim {
 public:
  // Makes Write write this claim.
  void Expect(const Claim& claim);
  // Writes the expected claim. Does nothing if there is none, or it has been written. Takes as long
  // as the disk.
  Status Write(const std::string& folder, FileSystem& files = RealFileSystem());
  // Returns true once after the expected claim has been written. Returns at once.
  bool TakeWritten();

 private:
  Mutex mutex_;
  std::optional<Claim> expected_ ABSL_GUARDED_BY(mutex_);
  bool written_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tfjob::train
