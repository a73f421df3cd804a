// Leaves out the examples that a function refuses.
#pragma once

#include <functional>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Returns whether to keep the example. Several threads may call it at the same time. The result
// must depend on the example only.
using FilterFunction = std::function<StatusOr<bool>(const Example&)>;

// Reads all examples once, with `threads` threads, to find those that are kept; keeps one bit for
// each. Returns the errors of reading and of the function, with the number of the example, and
// InvalidArgument if none is kept or, before anything is read, if the bits need more memory than
// the process may use.
StatusOr<SourcePtr> Filter(SourcePtr source, const FilterFunction& function, int threads);

}  // namespace tfjob::data
