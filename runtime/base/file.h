// Reads and writes whole files. Errors name the path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob {

StatusOr<std::string> ReadFile(const std::string& path);

// Writes a temporary file next to `path`, syncs it, renames it over `path` and syncs the folder.
// After a crash, the file contains either all of its old content or all of the new content.
Status WriteFileAtomically(const std::string& path, std::string_view content,
                           FileSystem& files = RealFileSystem());
// Like the overload above, but for content that `write` appends to the file, piece by piece.
Status WriteFileAtomically(const std::string& path, absl::FunctionRef<Status(OutputFile&)> write,
                           FileSystem& files = RealFileSystem());

// Returns the folder of a path; "." if the path contains no folder.
std::string ParentFolder(const std::string& path);

// Creates the folder and its parents. An existing folder is not an error.
Status MakeDirectories(const std::string& path);

// Calls fsync on the folder, so that renames in it survive a crash.
Status SyncDirectory(const std::string& path);

// Returns the sorted names of the entries in a folder, without "." and "..".
StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

}  // namespace tfjob
