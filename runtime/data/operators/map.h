// Applies a function to every example of a source.
#pragma once

#include <functional>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Returns another example. Several threads may call it at the same time. The result must depend on
// the example only.
using MapFunction = std::function<StatusOr<Example>(const Example&)>;

// The function is called when a batch needs the example, by `threads` threads, and once for example
// 0 to learn the types and shapes of the result, which must be the same for all examples. Returns
// the errors of reading that example, and of the function.
StatusOr<SourcePtr> Map(SourcePtr source, MapFunction function, int threads);

}  // namespace tfjob::data
