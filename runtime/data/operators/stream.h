// Makes a source of a function that yields examples one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/data/operators/example.h"

namespace tfjob::data {

// Returns the next example, or nullopt after the last one.
using NextExample = std::function<StatusOr<std::optional<Example>>()>;
// Starts a new pass over the examples. Every pass must yield the same ones.
using StartPass = std::function<StatusOr<NextExample>()>;

// The first `size` examples of a pass. To read an example, the reader goes on to it or, if the pass
// is beyond it, starts another pass, so the source has no random access. `name` is what error
// messages call it. RowReader::Read returns the errors of the functions, and InvalidArgument if a
// pass ends before `size` examples.
StatusOr<SourcePtr> Stream(const std::string& name, int64_t size, StartPass start);

}  // namespace tfjob::data
