// Keeps the values of a source in memory. Records are then parsed, and images decoded, only once
// instead of in every epoch.
#pragma once

#include <cstddef>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct CacheOptions {
  // The maximum total size of all caches in the process, in bytes. 0: three quarters of the memory
  // that the process may use. If the type of a column differs from that of its field, a pipeline
  // copies the column; these copies do not count.
  size_t most_bytes = 0;
};

// Reads all examples, and returns a source that has them in memory. Returns `source` itself if it
// is already in memory. Returns InvalidArgument, before reading anything, if the values and those
// of all other caches need more than most_bytes in total. Propagates errors from reading the
// examples.
StatusOr<SourcePtr> Cache(SourcePtr source, const CacheOptions& options = {});

}  // namespace tfjob::data
