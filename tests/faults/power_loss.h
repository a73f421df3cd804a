// Records file operations, and computes the possible states of a folder after a power failure.
//
// A power failure preserves content that was synced, and each creation, rename and removal after
// which the folder was synced. Any combination of all other changes may be lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/file_system.h"

namespace tfjob::faults {

// The contents of the files of one folder, by name.
using Files = std::map<std::string, std::string>;

// Performs and records operations in a folder. Used by one thread.
class RecordingFiles : public FileSystem {
 public:
  // Performs operations in `folder`, and records them. Initially, the folder contains the files
  // `before`, which have been synced.
  RecordingFiles(std::string folder, Files before);

  // Returns the possible states of the folder after a power failure at any time up to now.
  std::vector<Files> StatesAfterPowerLoss() const;

  StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  friend class RecordingFile;
  enum class Kind { kCreate, kAppend, kSync, kRename, kRemove, kSyncDirectory };
  struct Operation {
    Kind kind;
    std::string name;      // without the folder; for the first three kinds, the name at creation
    std::string argument;  // the bytes, or the new name
  };
  std::string NameOf(const std::string& path) const;
  void AddStatesAt(size_t count, std::vector<Files>& states) const;

  const std::string folder_;
  const Files before_;
  std::vector<Operation> operations_;
};

// Returns the files of a folder.
Files ReadFolder(const std::string& folder);
// Makes the folder contain exactly these files.
void WriteFolder(const std::string& folder, const Files& files);

}  // namespace tfjob::faults
