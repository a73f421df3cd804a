// Writes and reads the file group.json of model_dir. The task that provides the first state of a
// run writes a number there that all tasks of its group know. A task that finds this number in its
// own model_dir shares the folder with that task.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::train {

// Creates the folder if necessary, and replaces the number of an earlier run.
Status WriteClaim(const std::string& folder, int64_t number, FileSystem& files = RealFileSystem());
// Returns NotFound if there is no such file, and DataLoss if its content is not valid.
StatusOr<int64_t> ReadClaim(const std::string& folder);

}  // namespace tfjob::train
