// Creates a source of examples from arrays in files.
#pragma once

#include <memory>
#include <vector>

#include "runtime/data/arrays/stored_array.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// Returns a source with one field per array. All arrays have the same number of examples, at least
// one, and examples that are not empty. RowReader::Read returns FailedPrecondition if a file has
// changed since it was opened, DataLoss or InvalidArgument, with the file and the row, if a value
// is invalid, and I/O errors.
std::shared_ptr<const Source> ArraySource(std::vector<StoredArray> arrays);

}  // namespace tfjob::data
