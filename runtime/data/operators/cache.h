// Keeps the values of a source in memory, so that records are parsed and images are decoded once
// instead of in every epoch.
#pragma once

#include <cstddef>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct CacheOptions {
  // The bytes that all caches of the process may take together. 0: three quarters of the memory
  // that the process may use. Pipelines copy the columns whose type is not that of the field, which
  // is not counted.
  size_t most_bytes = 0;
};

// Reads all examples. Returns the errors of reading them, and InvalidArgument, before anything is
// read, if their values and those of the other caches take more than most_bytes. Returns a source
// in memory itself.
StatusOr<SourcePtr> Cache(SourcePtr source, const CacheOptions& options = {});

}  // namespace tfjob::data
