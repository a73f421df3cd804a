// Applies a function to every example of a source.
#pragma once

#include <functional>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Computes an example from another one. Several threads may call the function at the same time. The
// result must depend only on the example.
using MapFunction = std::function<StatusOr<Example>(const Example&)>;

// Returns a source of the results. Calls the function on `threads` threads when a batch needs
// examples. Also calls it once immediately, with example 0, to determine the types and shapes of
// the results. These must be the same for all examples. Propagates errors from reading example 0
// and from the function.
StatusOr<SourcePtr> Map(SourcePtr source, MapFunction function, int threads);

}  // namespace tfjob::data
