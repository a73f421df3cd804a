// Keeps the values of a source in memory, so that records are parsed and images are decoded only
// once, not in every epoch.
#pragma once

#include <cstddef>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct CacheOptions {
  // Limits the total size of all caches in the process, in bytes. 0: three quarters of the memory
  // that the process may use. Does not count the copy that a pipeline makes of each column whose
  // type differs from that of its field.
  size_t most_bytes = 0;
};

// Reads all examples, and returns a source that has them in memory. Returns `source` itself if it
// is already in memory. Returns InvalidArgument, before it reads anything, if the values and those
// of the other caches take more than most_bytes. Propagates errors from reading the examples.
StatusOr<SourcePtr> Cache(SourcePtr source, const CacheOptions& options = {});

}  // namespace tfjob::data
