// Writes and reads the file group.json of model_dir. The task that provides the first state of a
// run writes a number to this file, and all tasks of its group know the number. A task that finds
// this number in its own model_dir shares the folder with the task that wrote it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::train {

// Writes the number. Creates the folder if necessary, and replaces the number of an earlier run.
Status WriteClaim(const std::string& folder, int64_t number, FileSystem& files = RealFileSystem());
// Reads the number. Returns NotFound if there is no such file, and DataLoss if its content is
// invalid.
StatusOr<int64_t> ReadClaim(const std::string& folder);

}  // namespace tfjob::train
