// Keeps only the examples that a function accepts.
#pragma once

#include <functional>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Returns whether to keep the example. Several threads may call the function at the same time. The
// result must depend only on the example.
using FilterFunction = std::function<StatusOr<bool>(const Example&)>;

// Calls the function for every example, on `threads` threads, and returns a source of the examples
// to keep. Uses one bit of memory per example. Returns InvalidArgument, before reading anything, if
// these bits need more memory than the process may use. Also returns InvalidArgument if no example
// is kept. Propagates errors from reading `source`, and errors from the function with the index of
// the example.
StatusOr<SourcePtr> Filter(SourcePtr source, const FilterFunction& function, int threads);

}  // namespace tfjob::data
