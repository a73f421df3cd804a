// Keeps the values of a source in a file, as tf.data.Dataset.cache(filename) does, so that later
// runs need not parse records, decode images or split text into tokens.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// If `path` is a complete file of this source, returns a source that reads it. Otherwise, reads all
// examples, writes them to a file with a temporary name in the same folder, and renames that file
// when it is complete. The file at `path` is therefore always complete or absent. Tasks that start
// at the same time write a file each, and the last one stays. Source::values_hash, the number of
// examples and the types of the values must be those of the source, and the file must have been
// written by the same version of this program; any other cache is replaced. The file is read, not
// mapped, and every example has a checksum. Before a file is written, temporary files of the same
// name that have not changed for an hour are removed: their writers were killed.
//
// `version` becomes part of the hash. It stands for what the hash cannot cover, and is required if
// functions of the program compute the values (InvalidArgument).
//
// If the file cannot be written, for example because the disk is full, logs a warning and returns
// `source` itself. Also returns `source` itself, without writing a file, if it is in memory.
// Returns InvalidArgument if `path` exists and is not a cache, so that no other file is
// overwritten. Propagates errors from reading the source. RowReader::Read returns DataLoss, with
// the file and the example, if the file is damaged later.
StatusOr<SourcePtr> CacheInFile(SourcePtr source, const std::string& path,
                                const std::string& version = "",
                                FileSystem& files = RealFileSystem());

}  // namespace tfjob::data
