// Whole files. Errors name the path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob {

StatusOr<std::string> ReadFile(const std::string& path);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder:
// after a crash the path holds the old content or the new, never a part.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// Makes the folder and its parents; an existing folder is no error.
Status MakeDirectories(const std::string& path);

// fsync of the folder, so that renames in it survive a crash.
Status SyncDirectory(const std::string& path);

// The names in a folder, sorted, without "." and "..".
StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

}  // namespace tfjob
