// Reads a LevelDB table (SSTable), the format of a checkpoint's index, from memory.
// Format: https://github.com/google/leveldb/blob/main/doc/table_format.md
//
// The project does not use LevelDB's reader, because checkpoints are untrusted input and LevelDB
// trusts the sizes in a file. This reader checks every offset and size before using it, and limits
// the total size of keys and values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::io {

// Returns the table's keys and values, in the order of the file. Returns DataLoss, with a message
// that describes the error, for a damaged file, and Unimplemented for a compressed file.
StatusOr<std::vector<std::pair<std::string, std::string>>> ReadTable(std::string_view file);

}  // namespace tfjob::io
