// Opens files of arrays: IDX files and NumPy arrays.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source.h"
#include "runtime/data/storage.h"

namespace tfjob::data {

// Both functions keep the values in memory if they are small enough (storage.h): see LoadIdx and
// LoadNpz (dataset.h), whose errors they return. Otherwise, each example is read from the files
// when a batch needs it (array_source.h). Arrays that do not allow this are first copied to a
// temporary file: gzipped IDX files, compressed arrays of an archive, and arrays in Fortran order.
// The checksums of uncompressed arrays in an archive are verified here, in one pass over them. The
// fields and their values do not depend on where they are kept.
StatusOr<std::shared_ptr<const Source>> OpenIdx(const IdxOptions& options,
                                                const StorageOptions& storage = {});
// `options.in_memory` must be empty.
StatusOr<std::shared_ptr<const Source>> OpenNpz(const NpzOptions& options,
                                                const StorageOptions& storage = {});

}  // namespace tfjob::data
