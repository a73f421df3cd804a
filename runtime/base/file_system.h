// Defines the operations that change files, behind an interface, so that a test can simulate a disk
// that is full, fails, hangs or loses power. RealFileSystem() is the machine's file system.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob {

// A file that is being written. The destructor closes it. Owned by one thread.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Appends all bytes to the file. On failure, truncates the file to its former length, if the disk
  // permits.
  virtual Status Append(std::string_view bytes) = 0;
  // Returns once the content is on the disk (fsync).
  virtual Status Sync() = 0;
};

// Thread-safe. Errors name the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates a file. Returns AlreadyExists if a file, folder or link of this name exists. Does not
  // follow links.
  virtual StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) = 0;
  // Renames a file. Replaces `to` if it exists.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Removes a file. Does nothing if the file does not exist.
  virtual Status Remove(const std::string& path) = 0;
  // Syncs a folder (fsync), so that the creations, renames and removals in it survive a crash of
  // the machine.
  virtual Status SyncDirectory(const std::string& path) = 0;
};

// Returns the machine's file system, which exists until the process exits.
FileSystem& RealFileSystem();

// Returns a name next to `path` that cannot be guessed: "<path>.tmp.<16 hexadecimal digits>". The
// digits are random. A process id in place of the digits would be unsafe: it is 1 in every
// container, so an attacker who can write to the folder could place a link with the expected name
// there.
std::string TemporaryPath(const std::string& path);
// Returns whether a file name (without its folder) has the form that TemporaryPath returns, or the
// form that earlier versions used: "<name>.tmp.<process id>".
bool IsTemporaryName(std::string_view name);

}  // namespace tfjob
