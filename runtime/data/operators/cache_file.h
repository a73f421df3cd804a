// Keeps the values of a source in a file, so that later runs need not parse records, decode images
// or divide texts into tokens, as tf.data.Dataset.cache(filename) does.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// If `path` is a complete file of this source, returns a source that reads it; else reads all
// examples, writes the file under a temporary name next to it, and renames it when it is complete.
// So a file is complete or absent, whatever happens; tasks that start at the same time write a
// file each, and the last one stays. The fingerprint, the number of examples and the types of the
// values must be those of the source; an outdated file is replaced. The file is read, not mapped,
// and every example has a checksum.
//
// If the file cannot be written, because the disk is full for example, logs a warning and returns
// the source itself. Returns a source in memory itself, and writes nothing. Returns InvalidArgument
// if `path` exists and is no cache, so that no other file is overwritten, and the errors of reading
// the source. RowReader::Read returns DataLoss, with the file and the example, if the file is
// damaged later.
StatusOr<SourcePtr> CacheInFile(SourcePtr source, const std::string& path,
                                FileSystem& files = RealFileSystem());

}  // namespace tfjob::data
