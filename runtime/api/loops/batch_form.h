// Describes the arrays of a batch. Private to this package.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/api/batch.h"
#include "runtime/base/status.h"

namespace tfjob::api {

// Returns a description that is the same for all batches with the same arrays, types and shapes of
// examples: "x float32[3], y int64[]".
std::string FormOf(const Batch& batch);
// Returns the number of examples in the first array, or 0 if there is no array.
int64_t RowsOf(const Batch& batch);
// Returns a batch of the same form with one example, whose values are zeros. Returns
// InvalidArgument if `batch` has examples.
StatusOr<Batch> OneExampleLike(const Batch& batch);

}  // namespace tfjob::api
