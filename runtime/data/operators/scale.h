// Multiplies fields of a source by a factor when a batch is made, on top of the columns' own.
#pragma once

#include <set>
#include <string>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Applies to columns of floating-point numbers. The fields of the result are float32, so that
// operators that copy the values scale them, too. So name only fields whose values the model takes
// as float32. A factor of 1, or no field, returns the source itself.
SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor);

}  // namespace tfjob::data
