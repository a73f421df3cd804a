// Creates a source from a function that yields examples one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Returns the next example, or nullopt after the last one.
using NextExample = std::function<StatusOr<std::optional<Example>>()>;
// Starts a new pass over the examples. Every pass must yield the same examples in the same order.
using StartPass = std::function<StatusOr<NextExample>()>;

// Returns a source of the first `size` examples of a pass. To read an example, a reader advances to
// this example or, if the current pass is already beyond the example, starts a new pass. The source
// therefore has no random access. Error messages call the source `name`. RowReader::Read propagates
// errors from the functions, and returns InvalidArgument if a pass ends before `size` examples.
StatusOr<SourcePtr> Stream(const std::string& name, int64_t size, StartPass start);

}  // namespace tfjob::data
