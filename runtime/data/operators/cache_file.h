// Keeps the values of a source in a file, as tf.data.Dataset.cache(filename) does. Later runs then
// need not parse records, decode images or split text into tokens.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// If `path` is a complete cache of this source, returns a source that reads this file. Otherwise,
// reads all examples, writes them to a temporary file in the same folder, and renames that file
// when it is complete. The file at `path` is therefore always complete or absent. If several tasks
// start at the same time, each writes a file, and the last file replaces the others. A cache is
// used only if it has the same values_hash, number of examples and types of values as the source,
// and if the same version of this program has written it. Any other cache is replaced. The file is
// read, not mapped, and every example has a checksum. Before a file is written, temporary files
// with the same name that have not changed for an hour are removed, because their writers were
// killed.
//
// `version` is part of the hash. It represents everything that the hash cannot cover. If functions
// of the program compute the values, returns InvalidArgument if `version` is "".
//
// If the file cannot be written, for example because the disk is full, logs a warning and returns
// `source` itself. Also returns `source` itself, without writing a file, if it is in memory. Never
// overwrites a file that is not a cache, but returns InvalidArgument. Propagates errors from
// reading the source. RowReader::Read returns DataLoss, with the file and the example, if the file
// has been damaged since it was written.
StatusOr<SourcePtr> CacheInFile(SourcePtr source, const std::string& path,
                                const std::string& version = "",
                                FileSystem& files = RealFileSystem());

}  // namespace tfjob::data
