// Keeps the values of a source in memory, so that records are parsed and images are decoded only
// once, not in every epoch.
#pragma once

#include <cstddef>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct CacheOptions {
  // Limits the bytes of all caches in the process together. 0: three quarters of the memory that
  // the process may use. Does not count the copy that a pipeline makes of each column whose type
  // differs from that of its field.
  size_t most_bytes = 0;
};

// Reads all examples, and returns a source that has them in memory. A source that is in memory
// already is returned itself. Returns InvalidArgument, before it reads anything, if the values and
// those of the other caches take more than most_bytes, and the errors of reading the examples.
StatusOr<SourcePtr> Cache(SourcePtr source, const CacheOptions& options = {});

}  // namespace tfjob::data
