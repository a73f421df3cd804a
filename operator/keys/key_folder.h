// Reads the operator's keys from the folder of a mounted Secret, and reads them again when they
// change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/keys/key_ring.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::keys {

// Contains the result of reading the folder once.
struct FoundKeys {
  KeyRing ring;
  // Explains why files in the folder are not in the ring. There is one message per file, which
  // begins with the file's path.
  std::vector<std::string> problems;
};

// Reads every file of the folder into a ring. A file's name is the key's name, and the file's
// content is the secret. Skips names that begin with a dot. If there is a link `..data`, which a
// kubelet replaces to change all files atomically, reads all files from the folder to which the
// link points. Returns an error if the folder cannot be listed, and Unavailable if a file
// disappears during the read.
StatusOr<FoundKeys> ReadKeys(const std::string& folder);

// Caches the keys of a folder. Thread-safe. Logs every change to the ids of the keys and to the set
// of files that are not keys, and logs if there are no keys at all. Never logs a secret.
class KeyFolder {
 public:
  // If `folder` is "", there are no keys. `clock` must outlive this object.
  KeyFolder(std::string folder, Clock& clock) : folder_(std::move(folder)), clock_(clock) {}

  // Returns the keys. Reads the folder again if it was last read 10 s ago or earlier. If the folder
  // cannot be read now, or no longer contains any keys, returns the keys from the last successful
  // read: running jobs need these keys, and the tasks of a job without a key would accept any peer.
  // Never returns nullptr.
  std::shared_ptr<const KeyRing> Ring();

 private:
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Replace(FoundKeys found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogRing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogNew(std::vector<std::string> problems) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<const KeyRing> ring_ ABSL_GUARDED_BY(mutex_) = std::make_shared<KeyRing>();
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
  std::optional<Duration> read_at_ ABSL_GUARDED_BY(mutex_);
  bool logged_ ABSL_GUARDED_BY(mutex_) = false;
  bool keeps_ ABSL_GUARDED_BY(mutex_) = false;  // the keys are from an earlier read
};

}  // namespace tfjob::keys
