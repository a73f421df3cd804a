// Keeps the values of a source in a file, as tf.data.Dataset.cache(filename) does. Later runs then
// need not parse records, decode images or split text into tokens.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// If the file at `path` is a complete, up-to-date cache of `source`, returns a source that reads
// it. Otherwise, reads all examples, writes them to a temporary file in the same folder, and
// renames it to `path` once it is complete, so `path` never contains a partial file. If several
// tasks start at the same time, each writes its own file, and the last rename wins.
//
// A cache is up to date if its values_hash, number of examples and value types match the source,
// and it was written by the same version of this program. An outdated cache is replaced. If the
// file is not a cache at all, returns InvalidArgument and leaves it alone. The file is read rather
// than mapped, and every example has a checksum. Before writing, removes temporary files of the
// same name that have not changed for an hour, because their writers must have been killed.
//
// `version` is hashed along with the source, and stands for whatever the source's own hash cannot
// cover. It must not be "" if functions of the program compute the values; otherwise, returns
// InvalidArgument.
//
// Returns `source` itself if the source is in memory, or, with a warning in the log, if the file
// cannot be written (for example because the disk is full). Propagates errors from reading the
// source. If the file has been damaged since it was written, RowReader::Read returns DataLoss with
// the file and the example.
StatusOr<SourcePtr> CacheInFile(SourcePtr source, const std::string& path,
                                const std::string& version = "",
                                FileSystem& files = RealFileSystem());

}  // namespace tfjob::data
